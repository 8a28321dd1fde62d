"""What each short way beside an ordinary one is worth: the gateway without it, beside the gateway as it is."""
