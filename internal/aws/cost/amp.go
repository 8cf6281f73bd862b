package cost

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
