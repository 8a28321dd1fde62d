"""The attempts of an exchange: which deployment is called next, which failures may be retried, and when. No other
package retries. An `Exchange` is one request of a client and its response, to which each layer adds its decisions; a
`RunningAttempt` is one call of a deployment for it, from the slot that it takes to the end of the response."""
