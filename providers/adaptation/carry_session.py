"""Sends the vendor an id of the conversation if the client sent none. A vendor with many servers finds the prompt's
prefix in a cache only if it knows the conversation."""

from dataclasses import replace

from providers.dialect import UpstreamRequest


def carry_session(sent: UpstreamRequest, session: str) -> UpstreamRequest:
    """Return a call with the conversation's id in the header or field that the vendor's profile names, unless the
    client has set it. `session` is a string of hex digits."""
    profile = sent.target.profile
    place = profile.session
    if place is None:
        return sent
    by_responses = profile.responses is not None and sent.url.partition("?")[0].endswith(profile.responses.path)
    if place.header is not None and not (by_responses and place.field is not None):
        return _with_header(sent, place.header, session)
    if place.field is None or not (by_responses or _takes(sent, place.field)):
        return sent
    return _with_field(sent, place.field, session)


def _takes(sent: UpstreamRequest, field: str) -> bool:
    """Return whether the target's endpoint accepts the field, for the target's model and version of the API."""
    target = sent.target
    profile = target.version_profile
    profile = profile.for_model(*target.model_names)
    return any(operation == sent.operation and field in wire.accepts for operation, wire in profile.wires.items())


def _with_header(sent: UpstreamRequest, name: str, session: str) -> UpstreamRequest:
    if any(given.lower() == name for given in sent.headers):
        return sent
    return replace(sent, headers={**sent.headers, name: session})


def _with_field(sent: UpstreamRequest, name: str, session: str) -> UpstreamRequest:
    """Return the call with a field added before all other fields of its body. A body that contains the name anywhere is
    left unchanged, since only parsing the whole body would show whether the body already has this field."""
    body = sent.body
    if body[:1] != b"{" or body[1:2] == b"}" or f'"{name}"'.encode() in body:
        return sent
    return replace(sent, body=b'{"%s":"%s",%s' % (name.encode(), session.encode(), body[1:]))
