"""Choose which good requests get a line in the access log."""

from dataclasses import dataclass

from proxy.request_record import RequestRecord


@dataclass(slots=True, eq=False)
class LineSampling:
    """Chooses an exact share of the good requests, one after so many: no client can choose for itself, as it could by
    the ids that it gives its requests. Good is what its first attempt answered in less than `slow` seconds; any other
    request is always chosen."""

    share: float
    slow: float
    _due: float = 0.0

    def takes(self, record: RequestRecord) -> bool:
        """Return whether a finished request gets a line, and note in the record for how many it stands."""
        if record.outcome != "ok" or record.finished - record.started >= self.slow or len(record.attempts) > 1:
            return True
        for attempt in record.attempts:
            if attempt.outcome != "ok" or attempt.repeats:
                return True
        self._due += self.share
        if self._due < 1.0 - 1e-9:  # ten times 0.1 is less than 1
            return False
        self._due -= 1.0
        record.sample = self.share
        return True
