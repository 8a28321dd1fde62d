"""Tools that vendors run themselves and that several of them have: a client's spelling of one becomes the target's."""
