"""Makes frozen records immutable for the whole run. It is imported before any module that defines one."""

from providers.frozen_record import freeze_records

freeze_records()
