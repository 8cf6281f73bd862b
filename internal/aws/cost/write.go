package cost

import "math"

// write adds the cost of making samples durable in segments.
func (w *sheet) write() {
	n := w.requests()
	body := w.Sent() * w.m.WireBytes.Value
	if w.WriteThrough == HTTPAPI {
		w.add(Front, "requests", n*math.Ceil(max(1, body)/httpAPIBytes), HTTPAPIRequest, "samples ÷ samples per send × 512 KiB units of a body")
	}
	switch w.Mode {
	case Buffered:
		w.buffered(n)
	case Direct:
		k := w.perSend(w.m.DirectCPU, 1, w.m.S3Seconds.Value)
		k.cpu += w.m.SegmentCPU.Value
		w.function(Ingest, n, k, w.Memory.Ingest, "samples ÷ samples per send")
		w.add(Writes, "objects", w.segments(), S3Put, "one for each request")
	case Grouped:
		w.grouped(n)
	}
}

// requests returns the number of write requests per month.
func (w *sheet) requests() float64 { return w.Samples() / w.Sent() }

// perSend returns the work of one request. wait is the duration of the request that it waits for.
func (w *sheet) perSend(cpuPerMillion Figure, requests, wait float64) work {
	event := w.Sent() * w.m.WireBytes.Value / 1e6 * w.m.EventCPU.Value
	return work{cpu: w.Sent()*cpuPerMillion.Value/1e6 + event + requests*w.m.RequestCPU.Value, wait: wait}
}

// buffered adds the cost of the queue.
func (w *sheet) buffered(n float64) {
	size := w.messageBytes()
	per := w.perMessage(size)
	w.function(Ingest, n, w.perSend(w.m.ValidateCPU, per, w.m.QueueSeconds.Value), w.Memory.Ingest, "samples ÷ samples per send")
	chunks := n * per * math.Ceil(size/per/chunkBytes)
	w.add(Queue, "sent", chunks, SQSChunk, "requests × 64 KiB chunks of their messages")
	w.add(Queue, "received", chunks, SQSChunk, "as sent: each message in a request of its own, the most it can be")
	w.add(Queue, "deleted", n*per, SQSChunk, "a request for each message, the most it can be")
	w.add(Queue, "polled in vain", w.idlePolls(n*per), SQSChunk, "pollers × month ÷ 20 s, less what messages answer")
	b := w.batches()
	k := work{cpu: w.Samples() / max(1, b) * w.m.FlushCPU.Value / 1e6, wait: w.m.S3Seconds.Value}
	k.cpu += n * size / max(1, b) / 1e6 * w.m.EventCPU.Value
	k.cpu += w.objectsOf(b) * (w.m.SegmentCPU.Value + w.m.RequestCPU.Value)
	w.function(Flush, b, k, w.Memory.Flush, "messages ÷ messages of a batch")
	w.add(Writes, "objects", w.segments(), S3Put, "batches × tenants in one")
}

// messageBytes returns the size of the message text of one request.
func (w *sheet) messageBytes() float64 { return w.Sent()*w.m.QueueBytes.Value + w.m.MessageBytes.Value }

// perMessage returns the number of messages for size bytes.
func (w *sheet) perMessage(size float64) float64 { return max(1, math.Ceil(size/maxMessageBytes)) }

// invocationBytes bounds the payload that an event source passes to a function.
const invocationBytes = 6_000_000

// batches returns the number of invocations of the flush function: at high rates full batches, at
// low rates the messages of one window of each poller.
func (w *sheet) batches() float64 {
	size := w.messageBytes()
	per := w.perMessage(size)
	messages := w.requests() * per
	full := min(float64(w.Queue.Messages), max(1, math.Floor(invocationBytes/max(1, size/per))))
	windows := messages
	if s := w.Queue.Window.Seconds(); s > 0 {
		windows = min(messages, w.m.Pollers.Value*perMonth/s)
	}
	return max(messages/full, windows)
}

// objectsOf returns the expected number of segments per batch: one for each tenant with a message
// in it.
func (w *sheet) objectsOf(batches float64) float64 {
	if batches == 0 {
		return 0
	}
	t, n := float64(w.Tenants), w.requests()/batches
	return t * (1 - math.Pow(1-1/t, n))
}

// idlePolls returns the number of polls of an empty queue.
func (w *sheet) idlePolls(messages float64) float64 {
	return max(0, w.m.Pollers.Value*perMonth/w.m.PollSeconds.Value-messages)
}

// segments returns the number of segments per month.
func (w *sheet) segments() float64 {
	switch w.Mode {
	case Buffered:
		b := w.batches()
		return b * max(1, w.objectsOf(b))
	case Grouped: // at most one segment per tenant and second
		return min(w.requests(), float64(w.Tenants)*perMonth)
	}
	return w.requests()
}

// grouped adds the cost of instances that group the requests of a second.
func (w *sheet) grouped(n float64) {
	const busy = 0.5 // of the instances' processors: beyond it they would have to grow
	cores := (w.Samples()*w.m.DirectCPU.Value/1e6 + n*w.m.InvokeCPU.Value) / perMonth
	count := max(w.m.Instances.Value, math.Ceil(cores/busy/w.m.InstanceCores.Value))
	w.add(Ingest, "invocations", n, LambdaRequest, "samples ÷ samples per send")
	w.add(Servers, "hours", count*Month.Hours(), InstanceHour, "at least 3; more where half of their cores does not suffice")
	w.add(Writes, "objects", w.segments(), S3Put, "at most one a second and tenant")
}

// rules adds the evaluation of tenants' rules, each once a minute. Results that rules write are
// samples like others, beside the object that carries them.
func (w *sheet) rules() {
	if w.Rules == 0 {
		return
	}
	groups := math.Ceil(w.Rules / w.RulesPerGroup)
	workers := math.Ceil(w.Rules / w.m.RulesAtOnce.Value) // invocations that evaluate
	ticks := workers                                      // all invocations of a minute
	if workers > 1 {
		ticks++ // the one that divides the work
		w.add(Rules, "messages", 3*minutes*workers, SQSFIFOChunk, "sent, received and deleted for each invocation beyond the first")
	}
	share := groups / workers
	reads := w.m.QueryGets.Value + share
	results := 1.0 // objects with results
	if workers > 1 {
		results++ // those of the minute before, which another process has evaluated
	}
	k := work{
		cpu: w.Rules/workers*w.m.RuleCPU.Value + (reads+share+1+results+w.m.QueryLists.Value)*w.m.RequestCPU.Value,
		// States are read and written 16 at a time.
		wait: (2*math.Ceil(share/w.m.StatesAtOnce.Value) + w.m.QueryRounds.Value + 1 + results) * w.m.S3Seconds.Value,
	}
	w.function(Rules, minutes*workers, k, w.Memory.Rules, "one a minute for each 1,000 rules")
	if ticks > workers {
		w.function(Rules, minutes, work{cpu: 2 * w.m.RequestCPU.Value, wait: w.m.S3Seconds.Value + w.m.QueueSeconds.Value}, w.Memory.Rules, "one a minute that divides the work")
	}
	w.add(Rules, "PUT", minutes*(groups+results*workers), S3Put, "states of groups, and the objects with their results; with a queue, these once more by the next process")
	w.add(Rules, "GET", minutes*(groups+workers*w.m.QueryGets.Value), S3Get, "states of groups, and the samples that rules read")
	w.add(Rules, "LIST", minutes*(1+workers*w.m.QueryLists.Value), S3Put, "rules, and segments, every minute")
	w.add(Rules, "polled in vain", w.idlePolls(minutes*(ticks-1)), SQSFIFOChunk, "pollers × month ÷ 20 s, less what messages answer")
}

// AMP returns the price of a load on Amazon Managed Service for Prometheus. The service keeps
// samples for 150 days by default; other retentions are priced as if they could be chosen freely.
func AMP(l Load, p *Prices, m *Measured) *Bill {
	w := sheet{Load: l, m: m, bill: Bill{Samples: l.Samples()}}
	w.add(Ingest, "samples ingested", w.bill.Samples, AMPSample, "series × month ÷ scrape interval")
	kept := w.bill.Samples * l.Retention.Hours() / Month.Hours()
	w.add(Storage, "samples kept", kept*m.AMPBytes.Value/bytesOfGB, AMPStorage, "samples kept × bytes")
	w.add(Query, "samples processed", l.QueriesPerDay*days*l.SamplesPerQuery, AMPQuerySample, "queries × samples of a query")
	w.bill.settle(p)
	return &w.bill
}
