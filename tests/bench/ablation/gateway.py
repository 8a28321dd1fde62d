"""The gateway without a mechanism: `python -m tests.bench.ablation.gateway NAME serve -c FILE`."""

import sys

from proxy.__main__ import main
from tests.bench.ablation.mechanisms import BY_NAME
from tests.bench.ablation.switches import switch_off

if __name__ == "__main__":
    switch_off(BY_NAME[sys.argv.pop(1)])
    sys.exit(main())
