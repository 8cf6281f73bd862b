package cost

import "math"

// queries adds what it takes to answer. Each is counted as cold: with nothing of the store known or cached.
func (w *sheet) queries() {
	n := w.QueriesPerDay * days
	size := w.SamplesPerQuery * w.m.QueryBytes.Value
	gets := w.m.QueryGets.Value + math.Ceil(size/w.m.QueryGetBytes.Value)
	requests := gets + w.m.QueryLists.Value
	k := work{
		cpu:  w.m.QueryFixedCPU.Value + w.SamplesPerQuery*w.m.QueryCPU.Value/1e6 + requests*w.m.RequestCPU.Value,
		wait: w.m.QueryRounds.Value * w.m.S3Seconds.Value,
	}
	if w.Entry == HTTPAPI {
		w.add(Query, "requests", n*math.Ceil(max(1, w.BytesPerAnswer)/httpAPIBytes), HTTPAPIRequest, "queries × 512 KiB units of an answer")
	}
	w.function(Query, n, k, w.Memory.Query, "queries")
	w.add(Query, "GET", n*gets, S3Get, "queries × (manifests, meta.json, series tables, and 2 MiB pieces of samples)")
	w.add(Query, "LIST", n*w.m.QueryLists.Value, S3Put, "queries")
	w.add(Query, "answers", n*w.BytesPerAnswer/bytesOfGB, InternetOut, "queries × bytes of an answer, if they leave AWS")
}

// logs adds a log line or three for each invocation, and the alarms.
func (w *sheet) logs() {
	var n float64
	for i := range w.bill.Lines {
		if w.bill.Lines[i].Unit == LambdaRequest {
			n += w.bill.Lines[i].Quantity
		}
	}
	gb := n * w.m.LogBytes.Value / bytesOfGB
	w.add(Logs, "lines", gb, LogsIngested, "invocations × bytes of their lines")
	w.add(Logs, "kept", gb*w.m.LogDays.Value/days, LogsStored, "lines × days kept ÷ 30")
	w.add(Logs, "metrics", w.m.Metrics.Value, Metric, "as deployed")
	w.add(Logs, "alarms", w.m.Alarms.Value, Alarm, "as deployed")
}
