"""Makes records really frozen for the whole run. Imported before anything that defines one."""

from providers.frozen_record import freeze_records

freeze_records()
