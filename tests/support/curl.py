"""A replacement for curl on a machine without it. It knows the options that our examples use.

python -m tests.support.curl [-s] [-N] [-f] [-X METHOD] [-H 'name: value']... [-d BODY] URL
"""

import argparse
import http.client
import sys
from urllib.parse import urlsplit


def main(arguments: list[str]) -> int:
    """Make one request and write the response body. Return 22 for an error status under `-f`, as curl does."""
    parser = argparse.ArgumentParser(prog="curl")
    parser.add_argument("-s", "--silent", action="store_true")
    parser.add_argument("-N", "--no-buffer", action="store_true")
    parser.add_argument("-f", "--fail", action="store_true")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data")
    parser.add_argument("url")
    args = parser.parse_args(arguments)
    address = urlsplit(args.url)
    fields = (header.partition(":") for header in args.header)
    headers = {name.lower(): value.strip() for name, _, value in fields}
    if args.data:
        headers.setdefault("content-type", "application/x-www-form-urlencoded")
    connection = http.client.HTTPConnection(address.netloc)
    connection.request(args.request or ("POST" if args.data else "GET"), address.path, args.data, headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if args.fail and response.status >= 400:
        return 22
    sys.stdout.buffer.write(body)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
