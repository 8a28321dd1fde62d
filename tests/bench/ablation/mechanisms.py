"""The fast paths of the gateway, and how each is switched off.

`parts` locate a mechanism's source: files, and functions and classes as `file:name`. Their lines are the lines of the
mechanism. `private` are the private names of asyncio, aiohttp and the standard library that it uses. If a mechanism has
no patches, `reason` explains why it cannot be switched off from outside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.ablation.source_lines import lines_of

CONNECTIONS = "proxy.listener.inline_requests"
"""The module of clients' connections."""


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One mechanism. `patches` are pairs of a path and the name of its replacement (`switches.py`). `stays` is the
    reason to retain it whatever it saves. `tls` means that it is measured over TLS to the vendor."""

    name: str
    title: str
    parts: Sequence[str]
    private: Sequence[str] = ()
    patches: Sequence[tuple[str, str]] = ()
    reason: str = ""
    stays: str = ""
    tls: bool = False

    @property
    def stands(self) -> bool:
        """Return whether the source still contains it."""
        return all(lines_of(part) for part in self.parts)

    @property
    def lines(self) -> int:
        return sum(lines_of(part) for part in self.parts)


EAGER = "proxy/listener/inline_requests.py"
_OF_EAGER = f"{EAGER}:InlineRequests"
_OF_PLAIN = "proxy/listener/client_request.py:PlainRequest"
_HTTP1 = "proxy/http_client/http1_connection.py"

MECHANISMS: Sequence[Mechanism] = (
    Mechanism(
        "loop_clock",
        "clock of the loop without a method around it",
        ("proxy/loop_clock.py",),
        (),
        (("proxy.loop_clock:loop_clock", "loop_time"),),
    ),
    Mechanism(
        "eager",
        "request in the callback of its last byte (EagerTask)",
        (
            "proxy/eager_task.py",
            f"{_OF_EAGER}._begin_alone",
            f"{_OF_EAGER}._answer",
            f"{_OF_EAGER}._answered",
            f"{_OF_EAGER}._store_ahead",
            f"{_OF_EAGER}._handle_ahead",
            f"{_OF_EAGER}._parse_ahead",
            f"{_OF_EAGER}._parse",
        ),
        (
            "_enter_task",
            "_leave_task",
            "_asyncio_future_blocking",
            "_messages",
            "_waiter",
            "_manager",
            "_close",
            "_force_close",
            "_request_factory",
            "_task_handler",
            "_request_handler",
            "_handler_waiter",
            "_keep_alive",
            "_buffer_paused",
            "_pause_reading_for_buffer",
            "_resume_reading_for_buffer",
            "_current_request",
            "_loop",
        ),
        (
            ("proxy.listener.inline_requests:InlineRequests.at_boundary", "never_property"),
            ("proxy.listener.inline_requests:InlineRequests._begin_alone", "never"),
        ),
        stays="the issue keeps it",
    ),
    Mechanism(
        "plain_head",
        "heads of clients read by one expression, requests without aiohttp's objects",
        (
            "proxy/listener/fast_head_parser.py",
            _OF_PLAIN,
            "proxy/listener/client_request.py:ReceivedBody",
            f"{_OF_EAGER}._receive_part",
            f"{_OF_EAGER}._collect",
            f"{_OF_EAGER}._leave_to_parser",
            f"{_OF_EAGER}._stop_collecting",
            f"{_OF_EAGER}._begin_plain",
            f"{_OF_EAGER}.at_boundary",
        ),
        ("_cache", "_client_max_size", "_headers", "_payload", "_protocol", "_payload_writer", "_rel_url", "_cancel"),
        (("proxy.listener.fast_head_parser:read_plain_head", "nothing"),),
    ),
    Mechanism(
        "kept_heads",
        "findings of clients' heads cached by their bytes",
        (
            "proxy/listener/fast_head_parser.py:HeadFindings",
            "proxy/listener/fast_head_parser.py:read_plain_head",
            "proxy/gateway/match_path.py:RequestHead",
            "proxy/gateway/match_path.py:head_of",
        ),
        (),
        (("proxy.listener.fast_head_parser:_read_cached", "uncached"),),
    ),
    Mechanism(
        "early_refusal",
        "refusal before parsing",
        ("proxy/overload/refuse_before_parsing.py", "proxy/overload/refusing_connection.py"),
        ("_protocol", "_paused", "_keepalive_timeout", "_next_keepalive_close_time", "_loop", "_kwargs"),
        (("proxy.overload.refusing_connection:EarlyRefusingConnection.data_received", "deleted"),),
        stays="it saves where requests are refused, which `python -m tests.bench.overload` measures",
    ),
    Mechanism(
        "whole_twin",
        "whole response of a text alone",
        ("providers/dialects/openai/answer.py:only_text_in",),
        (),
        (("providers.dialects.openai.answer:only_text_in", "nothing"),),
    ),
    Mechanism(
        "chunk_twin",
        "chunk of a text alone",
        ("providers/dialects/openai/stream.py:OpenAIStream._plain_chunk",),
        (),
        (("providers.dialects.openai.stream:OpenAIStream._plain_chunk", "nothing"),),
    ),
    Mechanism(
        "end_twin",
        "last chunk of a choice",
        ("providers/dialects/openai/stream.py:OpenAIStream._plain_end",),
        (),
        (("providers.dialects.openai.stream:OpenAIStream._plain_end", "nothing"),),
    ),
    Mechanism(
        "text_runs",
        "runs of text read at once",
        (
            "providers/framing/text_frames.py",
            "providers/dialects/openai/text_runs.py",
            "providers/dialects/shared/decode_text_chunks.py",
        ),
        (),
        (
            ("providers.dialects.openai.stream:OpenAIStream.read_run", "nothing"),
            ("providers.dialects.shared.decode_text_chunks:TextStream.read_run", "nothing"),
        ),
        stays="the issue keeps it",
    ),
    Mechanism(
        "relay_template",
        "chunk relayed by comparing what is around its text",
        tuple(
            f"proxy/relay/relay_to_client.py:Relay.{name}"
            for name in ("_shorten", "_take", "_odd", "_settle", "_learn")
        ),
        (),
        (("proxy.relay.relay_to_client:Relay._shorten", "ordinary_take"),),
    ),
    Mechanism(
        "signal_take",
        "chunk given to its reader in the callback that brings it",
        ("proxy/eager_task.py:Signal.taking", "proxy/http_client/http_response.py:HttpResponse.each"),
        (),
        (("proxy.http_client.http_response:HttpResponse.each", "each_read"),),
    ),
    Mechanism(
        "take_all",
        "whole response taken with its head",
        ("proxy/http_client/http_response.py:HttpResponse.take_all",),
        (),
        (("proxy.http_client.http_response:HttpResponse.take_all", "nothing"),),
    ),
    Mechanism(
        "call_heads",
        "heads of vendors' calls cached",
        ("proxy/http_client/request_bytes.py:CallHead.serves", "proxy/http_client/request_bytes.py:CallHeads"),
        (),
        (("proxy.http_client.request_bytes:CallHeads.of", "new_head"),),
    ),
    Mechanism(
        "head_lines",
        "lines of response heads cached",
        (
            "proxy/gateway/gateway_headers.py:answer_lines",
            "proxy/gateway/gateway_headers.py:_called_lines",
            "proxy/listener/buffered_response.py:_around",
        ),
        (),
        (
            ("proxy.gateway.gateway_headers:_called_lines", "uncached"),
            ("proxy.listener.buffered_response:_around", "uncached"),
            ("proxy.listener.buffered_response:start_line", "uncached"),
        ),
    ),
    Mechanism(
        "buffered_response",
        "response in one write, its head as text",
        ("proxy/listener/buffered_response.py",),
        ("_protocol", "_paused", "_drain_helper", "_status", "_keep_alive"),
        (("proxy.listener.buffered_response:BufferedResponse", "whole_response"),),
    ),
    Mechanism(
        "alarms",
        "alarms on one timer",
        ("proxy/timers.py:Timers",),
        (),
        (("proxy.timers:Timers.set", "set_timer"), ("proxy.timers:Timers.drop", "drop_timer")),
    ),
    Mechanism(
        "wheel",
        "coarse alarms for keep-alives",
        ("proxy/timers.py:TimerWheel",),
        (),
        (("proxy.timers:TimerWheel.set", "set_alone"),),
    ),
    Mechanism(
        "one_write",
        "head and body of a call in one write",
        (f"{_HTTP1}:Http1Connection.begin",),
        (),
        ((f"{_HTTP1[:-3].replace('/', '.')}:SHORT", "below_zero"),),
    ),
    Mechanism(
        "place_at_once",
        "slot of a deployment without waiting",
        ("proxy/deployment_health/deployment_registry.py:Deployments.take_free",),
        (),
        (("proxy.deployment_health.deployment_registry:Deployments.take_free", "nothing"),),
    ),
    Mechanism(
        "allocator",
        "large buffers leave the process",
        ("proxy/process/c_allocator.py",),
        (),
        (("proxy.process.c_allocator:return_large_buffers", "never"),),
        stays="it is for memory, not for CPU",
    ),
    Mechanism(
        "collector",
        "garbage collector that follows the load",
        ("proxy/process/set_up_process.py:collect_by_load", "proxy/process/set_up_process.py:objects_held"),
        (),
        (("proxy.process.set_up_process:collect_by_load", "collect_as_python"),),
    ),
    Mechanism(
        "body_threads",
        "large bodies off the event loop",
        ("proxy/off_loop/request_threads.py",),
        (),
        (("proxy.surfaces.request.heavy_body:is_heavy", "never"),),
        stays="it is for the requests beside a large one, not for its own CPU",
    ),
    Mechanism(
        "streamed_response",
        "streams sent by a plain function",
        ("proxy/listener/streamed_response.py",),
        ("_protocol", "_paused", "_drain_helper"),
        reason="the relay calls its `send`, which aiohttp's has no counterpart of",
    ),
    Mechanism(
        "http_client",
        "HTTP client of our own",
        ("proxy/http_client/http1_connection.py", "proxy/http_client/http_transport.py"),
        reason="another client is another transport with other failures, no patch",
        stays="the issue keeps it",
    ),
    Mechanism(
        "protobuf",
        "spans as bytes by hand",
        ("proxy/tracing/protobuf_wire.py", "proxy/tracing/span_bytes.py"),
        reason="there is no other writer; `python -m tests.bench.tracing` measures what it costs",
    ),
    Mechanism(
        "limits_at_once",
        "admission without the registry of limits",
        ("proxy/teams/team_limiter.py:TeamLimiter.admit",),
        reason="it is the first half of the ordinary way",
    ),
)

BY_NAME: Mapping[str, Mechanism] = {each.name: each for each in MECHANISMS}
