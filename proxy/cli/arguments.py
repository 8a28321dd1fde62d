"""The commands of `dragoman` and their arguments.

Each command's module is imported when the command runs, so that `dragoman version` does not wait for an HTTP server to
load.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from config.problem import ConfigError
from proxy.cli.command_parser import CommandParser, port_number, worker_count
from proxy.cli.imports.import_options import GATEWAYS, IMPORT_EXAMPLES, add_import_options
from proxy.cli.logs.logs_options import LOGS_EXAMPLES, add_logs_options
from proxy.cli.prices.prices_options import PRICES_EXAMPLES, add_prices_options
from proxy.cli.terminal import at_terminal, require_output

if TYPE_CHECKING:
    from proxy.process.load_table import LogForm, Source

SURFACE_NAMES = ("openai", "scale", "fireworks", "pais", "anthropic", "responses")


Runner = Callable[[argparse.Namespace], int]
"""Runs one command and returns its exit status."""

Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"

SHELLS = ("bash", "zsh", "fish")


def _demo(args: argparse.Namespace) -> int:
    from proxy.cli.demo_command import demo, demo_once

    return demo_once(args.port) if args.once else demo(args.port)


def _source(args: argparse.Namespace) -> "Source":
    from proxy.cli.chosen_table import chosen_table
    from proxy.process.load_table import Source

    chosen = chosen_table(args.config, getattr(args, "table", None), os.environ, Path())
    return Source(chosen.path, os.environ, found=chosen.found)


def _reported_source(args: argparse.Namespace) -> "Source":
    from proxy.cli.chosen_table import report_unnamed_table

    source = _source(args)
    report_unnamed_table(source)
    return source


def serve(args: argparse.Namespace) -> int:
    from proxy.cli.chosen_table import report_unnamed_table
    from proxy.cli.serve_command import ServeOptions, serve

    form: LogForm = "text" if at_terminal(sys.stdout, sys.stderr) else "json"
    source = replace(_source(args), insecure_open=args.insecure_open, host=args.host, port=args.port, log=form)
    try:
        return serve(source, ServeOptions(args.admin_port, args.workers))
    except ConfigError:
        report_unnamed_table(source)
        raise


def _check(args: argparse.Namespace) -> int:
    from proxy.cli.check_command import FORMS, check
    from proxy.cli.chosen_table import report_checked_table

    source = _source(args)
    report_checked_table(source, sys.stdout if args.output == "text" else sys.stderr)
    return check(source, "error" if args.strict else "warning", FORMS[args.output])


def _routes(args: argparse.Namespace) -> int:
    from proxy.cli.routes_command import FORMS, routes

    return routes(_reported_source(args), args.team, FORMS[args.output])


def _explain(args: argparse.Namespace) -> int:
    from proxy.cli.explain_command import FORMS, ExplainOptions, explain

    options = ExplainOptions(args.request, args.team, args.surface, args.path, args.header)
    return explain(_reported_source(args), options, FORMS[args.output])


def _key_new(args: argparse.Namespace) -> int:
    from proxy.cli.key_command import KeyOptions, key_new

    return key_new(KeyOptions(args.team, args.name, args.expires, args.models), datetime.now(UTC))


def _schema(args: argparse.Namespace) -> int:
    from proxy.cli.schema_command import schema

    return schema()


def _vendors(args: argparse.Namespace) -> int:
    from proxy.cli.vendors_command import vendors_json, vendors_text

    return vendors_json(args.name) if args.json else vendors_text(args.name)


def _prices(args: argparse.Namespace) -> int:
    from proxy.cli.prices.prices_command import FORMS, prices, prices_diff

    source = _reported_source(args)
    if args.diff is not None:
        return prices_diff(source, args.models, args.diff)
    return prices(source, args.models, FORMS[args.output])


def _usage(args: argparse.Namespace) -> int:
    from proxy.cli.usage.usage_command import FORMS, UsageOptions, usage

    return usage(_reported_source(args), UsageOptions(args.by, args.since, args.team), FORMS[args.output])


def _limits(args: argparse.Namespace) -> int:
    from proxy.cli.usage.limits_command import LIMIT_FORMS, LimitsOptions, limits

    return limits(_reported_source(args), LimitsOptions(args.team, args.admin_port), LIMIT_FORMS[args.json])


def _logs(args: argparse.Namespace) -> int:
    from proxy.cli.logs.choose_lines import LogsOptions
    from proxy.cli.logs.logs_command import LINE_FORMS, logs

    asked = (args.team, args.status, args.model, args.id, args.since, args.slow, args.failed, args.follow)
    return logs(args.log, LogsOptions(*asked), LINE_FORMS[args.json])


def _import(args: argparse.Namespace) -> int:
    from proxy.cli.imports.import_command import import_to_file, import_to_output
    from proxy.cli.imports.litellm.database_files import Exports
    from proxy.cli.imports.written_file import write_new, write_over

    name = args.name or args.file.stem
    exports = Exports(tuple(args.keys), tuple(args.teams), tuple(args.models))
    if args.output is None:
        return import_to_output(args.gateway, args.file, name, exports)
    write = write_over if args.force else write_new
    return import_to_file(args.gateway, args.file, name, args.output, write, exports)


def _completion(args: argparse.Namespace) -> int:
    from proxy.cli.completion_command import completion

    return completion(argument_parser().tree(), args.shell)


def _version(args: argparse.Namespace) -> int:
    from proxy.cli.version_command import version_json, version_text

    return version_json() if args.json else version_text()


def argument_parser() -> CommandParser:
    """Return the parser of all commands. The parsed arguments have the Runner of the command as `run`."""
    parser = CommandParser(
        prog="dragoman",
        description="One endpoint, one request language and one completion shape for any model vendor.",
        epilog="`dragoman COMMAND --help` shows examples. Exit status: 0 done, 1 negative result (with the reason), "
        "2 wrong usage, 3 done with parts left out; `dragoman import` also has 4.",
    )
    parser.add_argument("--version", action=_Version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in _ADDERS:
        add(commands)
    return parser


class _Version(argparse.Action):
    """Prints the same text as the command `version`. argparse's own action is not used, because it needs the version
    when the parser is created."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: object) -> None:
        require_output()
        parser.exit(_version(argparse.Namespace(json=False)))


def _command(commands: Commands, name: str, run: Runner | None, summary: str, examples: Sequence[str]) -> CommandParser:
    """Add a command whose help ends with examples. A command without `run` has subcommands."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="\n".join(["examples:", *(f"  dragoman {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _table_option(parser: CommandParser) -> None:
    otherwise = "the file named by DRAGOMAN_CONFIG, else table.yaml in this folder, else the embedded configuration"
    parser.add_argument("-c", "--config", type=Path, metavar="FILE", help=f"the config file; without it {otherwise}")


def _table_arguments(parser: CommandParser) -> None:
    _table_option(parser)
    parser.add_argument("table", nargs="?", type=Path, metavar="FILE", help="the config file, as with -c")


def _add_demo(commands: Commands) -> None:
    summary = "run the gateway on its embedded configuration, send it one request and keep serving: no key, no network"
    parser = _command(commands, "demo", _demo, summary, ["demo", "demo --once", "demo --port 9000"])
    parser.add_argument("--once", action="store_true", help="exit after the request: 0 when it succeeded, else 1")
    parser.add_argument("--port", type=port_number, help="listen on this port instead of 8080 or a free one")


def _add_serve(commands: Commands) -> None:
    examples = ["serve", "serve table.yaml", "serve -c table.yaml --host 0.0.0.0 --port 8000 --workers 4"]
    parser = _command(commands, "serve", serve, "run the gateway", examples)
    _table_arguments(parser)
    parser.add_argument("--host", help="listen on this host instead of server.host")
    parser.add_argument("--port", type=port_number, help="listen on this port instead of server.port; 0: a free port")
    parser.add_argument(
        "--admin-port", type=port_number, help="the admin listener's port instead of server.admin.port; 0: a free port"
    )
    parser.add_argument(
        "--workers",
        type=worker_count,
        metavar="N",
        help="the number of worker processes instead of server.workers; auto: one for each usable core",
    )
    parser.add_argument(
        "--insecure-open", action="store_true", help="listen beyond loopback although the configuration has no teams"
    )


def _add_check(commands: Commands) -> None:
    summary = "print every problem of a config file, one per line: FILE:LINE:COL path: message"
    examples = ["check table.yaml", "check -c table.yaml --strict", "check -c table.yaml --output github"]
    parser = _command(commands, "check", _check, summary, examples)
    _table_arguments(parser)
    parser.add_argument("--strict", action="store_true", help="count warnings as errors")
    parser.add_forms("text", "json", "github")


def _add_routes(commands: Commands) -> None:
    summary = "show the deployments of every name of a config file"
    examples = ["routes -c table.yaml", "routes -c table.yaml --team search", "routes -c table.yaml --output json"]
    _table_arguments(parser := _command(commands, "routes", _routes, summary, examples))
    parser.add_argument("--team", help="only the names that this team may use")
    parser.add_forms("text", "json")


def _add_explain(commands: Commands) -> None:
    summary = "show the upstream calls of a request and the reasons for them, without sending anything"
    examples = [
        "explain request.json -c table.yaml --team search",
        "explain request.json -c table.yaml --path /v4/beta/completions",
        "explain - --output json < request.json",
        "explain request.json -c table.yaml -H 'session-id: 4f1e'",
    ]
    parser = _command(commands, "explain", _explain, summary, examples)
    parser.add_argument("request", metavar="REQUEST.json|-", help="the body a client would send; - for standard input")
    _table_option(parser)
    parser.add_argument("--team", help="explain the request of this team; without it every name is allowed")
    parser.add_argument("--surface", choices=SURFACE_NAMES, help="the API the client speaks; openai unless named")
    parser.add_argument(
        "--path", help="the path the client calls, which also names the surface; guessed from the body without it"
    )
    # This argument has no `type`, because argparse's errors would repeat the value, which may be a secret.
    header_help = "a header of the client's, which may name the conversation; several may be given, no value is printed"
    parser.add_argument("-H", "--header", action="append", default=[], metavar="'NAME: VALUE'", help=header_help)
    parser.add_forms("text", "json")


def _add_key(commands: Commands) -> None:
    parser = _command(commands, "key", None, "make keys for teams", ["key new", "key new --team search --name ci"])
    inner = parser.add_subparsers(metavar="COMMAND", required=True)
    examples = ["key new", "key new --team search --name ci --expires 90d --models fast,openai/gpt-4o"]
    each = _command(inner, "new", _key_new, "print a new key, once, and its entry for the config file", examples)
    each.add_argument("--team", help="the key's team, which the line above the key names")
    each.add_argument("--name", help="the key's name in the log, the metrics and the ledger")
    each.add_argument("--expires", metavar="90d|DATE", help="its expiry: a duration from now, a date or a time")
    each.add_argument("--models", metavar="A,B", help="the names that the key may use")


def _add_usage(commands: Commands) -> None:
    summary = "show the usage of teams: requests, errors, tokens and cost, from the ledger"
    examples = ["usage", "usage -c table.yaml --by team,day --since 30d", "usage --team search --by key,user --csv"]
    parser = _command(commands, "usage", _usage, summary, examples)
    _table_arguments(parser)
    dimensions = "team, key, model, asked (as the client wrote it), user, tag, day, deployment"
    parser.add_argument("--by", default="team,model", metavar="NAMES", help=f"a line for each: {dimensions}")
    parser.add_argument(
        "--since",
        default="7d",
        metavar="TIME",
        help="7d or 4w: days up to today, in the time zone of server.timezone; 12h: exactly; or a date, as 2026-11-01",
    )
    parser.add_argument("--team", help="only this team's usage")
    form = parser.add_mutually_exclusive_group()
    for name in ("csv", "json"):
        form.add_argument(
            f"--{name}", dest="output", action="store_const", const=name, default="table", help=f"as {name.upper()}"
        )


def _add_limits(commands: Commands) -> None:
    summary = "show the remaining limits and budgets of the running gateway"
    parser = _command(commands, "limits", _limits, summary, ["limits", "limits -c table.yaml --team search --json"])
    _table_arguments(parser)
    parser.add_argument("--team", help="only the limits of this team, its keys and its models")
    parser.add_argument("--admin-port", type=port_number, help="the port instead of server.admin.port, as for serve")
    parser.add_argument("--json", action="store_true", help="as a JSON object")


def _add_logs(commands: Commands) -> None:
    summary = "show a log in readable form, all of it or some requests, and follow it"
    add_logs_options(_command(commands, "logs", _logs, summary, LOGS_EXAMPLES))


def _add_schema(commands: Commands) -> None:
    examples = ["schema > schema.json"]
    _command(commands, "schema", _schema, "print the JSON Schema of the config file, for editors", examples)


def _add_vendors(commands: Commands) -> None:
    summary = "show the known vendors, and the fields that each honours, emulates or refuses"
    examples = ["vendors", "vendors anthropic", "vendors --json"]
    parser = _command(commands, "vendors", _vendors, summary, examples)
    parser.add_argument("name", nargs="?", help="a profile's name: every field, with the means or the reason")
    parser.add_argument("--json", action="store_true", help="everything as a JSON object")


def _add_prices(commands: Commands) -> None:
    summary = "show the current prices and their sources, or the changes in newer data"
    _table_option(parser := _command(commands, "prices", _prices, summary, PRICES_EXAMPLES))
    add_prices_options(parser)


def _add_import(commands: Commands) -> None:
    summary = "convert another gateway's configuration to a config file, with comments on the parts without counterpart"
    parser = _command(commands, "import", None, summary, IMPORT_EXAMPLES)
    inner = parser.add_subparsers(metavar="GATEWAY", required=True)
    for gateway, file in GATEWAYS.items():
        summary = (
            f"read {file}, print or write the config file, and check it: 0 valid, 3 valid with parts left out, "
            "4 valid if missing dependencies are installed, 1 invalid"
        )
        each = _command(
            inner, gateway, _import, summary, [f"import {gateway} FILE", f"import {gateway} FILE -o table.yaml"]
        )
        each.set_defaults(gateway=gateway)
        add_import_options(each, gateway)
        _output_options(each)


def _output_options(parser: CommandParser) -> None:
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file; without it standard output")
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")


def _add_completion(commands: Commands) -> None:
    examples = ["completion bash", "completion zsh", "completion fish"]
    summary = "print a script by which a shell completes commands and options: source <(dragoman completion bash)"
    parser = _command(commands, "completion", _completion, summary, examples)
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def _add_version(commands: Commands) -> None:
    parser = _command(commands, "version", _version, "print the version", ["version", "version --json"])
    parser.add_argument("--json", action="store_true", help="as a JSON object, with the Python and the system")


_ADDERS: Sequence[Callable[[Commands], None]] = (
    _add_demo,
    _add_serve,
    _add_check,
    _add_routes,
    _add_explain,
    _add_key,
    _add_usage,
    _add_limits,
    _add_logs,
    _add_schema,
    _add_vendors,
    _add_prices,
    _add_import,
    _add_completion,
    _add_version,
)
"""The commands in the order of the help output."""
