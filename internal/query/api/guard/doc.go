// Package guard stands before the handlers of the query API: it bounds what a request may send,
// take and wait for, determines its tenant, and answers for handlers that panic.
package guard
