package cost

import (
	"math"
	"time"
)

// days is the length of a month in days.
const days = float64(Month / day)

// compaction adds the merges from segments to one block per day.
func (w *sheet) compaction() {
	if w.Series == 0 {
		return
	}
	segments := w.segments()
	jobs := w.jobs(segments)
	gets := segments*w.m.CompactSegmentGet.Value + jobs*w.m.CompactJobGets.Value
	puts := jobs * w.m.CompactJobPuts.Value
	lists, heads := w.m.CompactJobLists.Value, w.m.CompactJobHeads.Value // of each job
	k := work{cpu: (w.Samples()*w.m.CompactCPU.Value/1e6 + segments*w.m.CompactSegmentCPU.Value + (gets+puts+jobs*(lists+heads))*w.m.RequestCPU.Value) / jobs}
	// Sources are fetched concurrently; a job's own requests run one after another.
	k.wait = (w.m.CompactJobGets.Value + w.m.CompactJobPuts.Value + lists + heads) * w.m.S3Seconds.Value
	w.function(Compact, jobs, k, w.Memory.Compact, "jobs: merges of segments, and of each tenant's ranges")
	w.add(Compact, "GET", gets, S3Get, "sources and manifests")
	w.add(Compact, "PUT", puts, S3Put, "files of blocks and manifests")
	w.add(Compact, "LIST", jobs*lists, S3Put, "jobs: their window, and the copies of the manifest")
	w.add(Compact, "HEAD", jobs*heads, S3Get, "jobs: the store's clock at their beginning and commit")
	w.add(Compact, "messages", 3*jobs, SQSFIFOChunk, "sent, received and deleted for each job")
	w.add(Compact, "polled in vain", w.idlePolls(jobs), SQSFIFOChunk, "pollers × month ÷ 20 s, less what jobs answer")
}

// jobs returns the number of compaction jobs per month. A tenant's segments are merged into parts,
// at most once a minute if one job can process all of them, and parts into larger parts.
func (w *sheet) jobs(segments float64) float64 {
	t := float64(w.Tenants)
	perTenant := segments / t / days // a day
	few := perTenant / w.m.PartSegments.Value
	many := max(minutes/days, perTenant/w.m.PartSources.Value)
	parts := min(few, many)
	return t * days * (w.m.JobsOfRanges.Value + parts*(1+1/w.m.PartSegments.Value))
}

// minutes is the number of ticks of the schedule per month.
const minutes = float64(Month / time.Minute)

// schedule adds the planner, which checks every tenant once a minute.
func (w *sheet) schedule() {
	t := float64(w.Tenants)
	rounds := math.Ceil(t / w.m.PlanConcurrency.Value)
	k := work{
		cpu:  (w.m.TickHeads.Value + t*(w.m.TickLists.Value+w.m.TickGets.Value)) * w.m.RequestCPU.Value,
		wait: w.m.TickSeconds.Value + w.m.TickHeads.Value*w.m.S3Seconds.Value + rounds*(w.m.TickLists.Value+w.m.TickGets.Value)*w.m.S3Seconds.Value,
	}
	w.function(Plan, minutes, k, w.Memory.Plan, "one a minute")
	w.add(Plan, "LIST", minutes*(w.m.TickTenants.Value+t*w.m.TickLists.Value), S3Put, "tenants every ten minutes, each tenant's segments every minute")
	w.add(Plan, "HEAD", minutes*w.m.TickHeads.Value, S3Get, "the store's clock, every minute")
	w.add(Plan, "GET", minutes*t*w.m.TickGets.Value, S3Get, "each tenant's manifest, when it has changed")
}

// key adds the key of KMS that encrypts bucket and queues. The requests for the bucket are too few
// to count, because it has a bucket key.
func (w *sheet) key() {
	if !w.KMS {
		return
	}
	queues := 1.0 // of jobs
	if w.Mode == Buffered {
		queues++
	}
	w.add(Storage, "key of KMS", 1, KMSKey, "one key")
	w.add(Queue, "requests to KMS", queues*perMonth/w.m.KMSSeconds.Value*3, KMSRequest, "queues × month ÷ 5 minutes × (2 of the sender + 1 of the receiver)")
}

// storage adds the size of the bucket when the first samples have reached the end of their
// retention.
func (w *sheet) storage() {
	kept := w.Retention.Hours() / 24
	perDay := w.Samples() / days
	fresh := min(kept, w.m.UncompactedDays.Value)
	samples := perDay * (kept*w.m.BlockBytes.Value + fresh*w.m.UncompactedBytes.Value)
	series := w.Series * (1 + w.Churn) * kept
	w.add(Storage, "samples", samples/bytesOfGB, S3Storage, "samples kept × bytes, and those of the last day in segments and parts")
	w.add(Storage, "labels", series*w.m.SeriesBytes.Value/bytesOfGB, S3Storage, "series × (1 + churn) × days kept × bytes")
	w.add(Storage, "rollups", series*w.m.RollupBytes.Value/bytesOfGB, S3Storage, "series × (1 + churn) × days kept × bytes")
}

// The requests of a pass of the replica: of each pass, of each tenant in it, and of each tenant
// that has changed (internal/app/copyapp; TestFollowRequests counts them). A listing costs as much
// as a put.
const (
	passPuts, passGets       = 3, 2
	tenantPuts, tenantGets   = 3, 3
	changedPuts, changedGets = 10, 4
	replicaMiB               = 1024
	replicaAtOnce            = 8 // objects
	blockLevels              = 3 // parts aside, a sample is in a block of each level once
)

// replica adds the function that keeps a replica in another region, at the prices of this one.
func (w *sheet) replica() {
	if !w.Replica {
		return
	}
	t, segments := float64(w.Tenants), w.segments()
	changed := min(segments, minutes*t)
	puts, gets := minutes*(passPuts+t*tenantPuts)+changed*changedPuts+segments, minutes*(passGets+t*tenantGets)+changed*changedGets+segments
	k := work{cpu: (puts + gets) * w.m.RequestCPU.Value / minutes, wait: (puts + gets - 2*segments*(1-1.0/replicaAtOnce)) * w.m.S3Seconds.Value / minutes}
	w.function(Replica, minutes, k, replicaMiB, "one a minute")
	w.add(Replica, "PUT, LIST", puts, S3Put, "passes × (3 + tenants × 3), 10 for each change of a tenant, and one for each segment")
	w.add(Replica, "GET, HEAD", gets, S3Get, "passes × (2 + tenants × 3), 4 for each change of a tenant, and one for each segment")
	var stored float64
	for _, l := range w.bill.Lines {
		if l.Unit == S3Storage {
			stored += l.Quantity
		}
	}
	w.add(Replica, "stored", stored, S3Storage, "as in the bucket")
	w.add(Replica, "sent", w.Samples()*(w.m.UncompactedBytes.Value+blockLevels*w.m.BlockBytes.Value)/bytesOfGB, RegionOut, "samples × bytes of a segment and of the blocks of three levels")
}
