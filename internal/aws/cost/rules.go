package cost

import "math"

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
