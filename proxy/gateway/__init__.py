"""One exchange from the first byte of the request to the last of the response. The gateway's `ClientExchange` is the
exchange that dispatch, hooks and the response cache take; its `RequestRecord` is read by observers and the ledger."""
