"""Tables written from what others say: another gateway's configuration, a library's list of prices."""
