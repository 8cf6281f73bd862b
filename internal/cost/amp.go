package cost

// AMP returns the price of a load on Amazon Managed Service for Prometheus. The service keeps
// samples for 150 days by default; other retentions are priced as if they could be chosen freely.
func AMP(l Load, p *Prices, m *Measured) *Bill {
	b := &Bill{Samples: l.Samples()}
	add := func(c Component, what string, quantity float64, unit, formula string) {
		b.Lines = append(b.Lines, Line{Component: c, What: what, Quantity: quantity, Unit: unit, Formula: formula})
	}
	add(Ingest, "samples ingested", b.Samples, AMPSample, "series × month ÷ scrape interval")
	kept := b.Samples * l.Retention.Hours() / Month.Hours()
	add(Storage, "samples kept", kept*m.AMPBytes.Value/bytesOfGB, AMPStorage, "samples kept × bytes")
	add(Query, "samples processed", l.QueriesPerDay*days*l.SamplesPerQuery, AMPQuerySample, "queries × samples of a query")
	b.settle(p)
	return b
}
