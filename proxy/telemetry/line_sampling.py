"""Chooses which successful requests get a line in the access log."""

from dataclasses import dataclass

from proxy.request_record import RequestRecord


@dataclass(slots=True, eq=False)
class LineSampling:
    """Chooses an exact share of the good requests, for example every tenth one for a share of 0.1. A client cannot
    influence the choice, unlike a choice that depends on the request's id. A request is good if its first attempt
    succeeded in less than `slow` seconds. Any other request is always chosen."""

    share: float
    slow: float
    _due: float = 0.0

    def takes(self, record: RequestRecord) -> bool:
        """Return whether a finished request gets a line, and store in the record how many requests the line stands
        for."""
        if record.outcome != "ok" or record.finished - record.started >= self.slow or len(record.attempts) > 1:
            return True
        for attempt in record.attempts:
            if attempt.outcome != "ok" or attempt.repeats:
                return True
        self._due += self.share
        if self._due < 1.0 - 1e-9:  # the sum of ten times 0.1 is less than 1
            return False
        self._due -= 1.0
        record.sample = self.share
        return True
