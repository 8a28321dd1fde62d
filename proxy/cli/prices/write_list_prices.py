"""Write the price data that ships with the gateway, from the installed library: `python -m
proxy.cli.prices.write_list_prices`.

The date is the day on which a version was first written, so the same version gives the same file.
"""

from datetime import UTC, date, datetime

from providers.list_prices.list_prices import SHIPPED, PriceData
from proxy.cli.prices.genai_data import data_text, installed_library


def main() -> None:
    """Write the file."""
    library = installed_library()
    day = datetime.now(UTC).date()
    if SHIPPED.exists() and (shipped := PriceData(SHIPPED.read_bytes())).version == library.version:
        day = date.fromisoformat(shipped.date)
    SHIPPED.write_bytes(data_text(library, day))


if __name__ == "__main__":
    main()
