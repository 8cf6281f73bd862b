package cost

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// exported are the units whose prices dashboards multiply with counters of processes.
var exported = []string{
	S3Put, S3Get, S3Storage, LambdaRequest, LambdaArm64, LambdaX86, SQSChunk, SQSFIFOChunk, HTTPAPIRequest, LogsIngested,
}

// Register adds promlake_price_dollars{unit} to reg: the price of the first unit of a month in a
// region, or in us-east-1 if the region's prices are unknown.
func Register(reg prometheus.Registerer, region string) error {
	p, err := ReadPrices(region)
	if err != nil {
		p, err = ReadPrices(DefaultRegion)
	}
	if err != nil {
		return err
	}
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "promlake_price_dollars", Help: "List price of one unit in US dollars, without free tiers and discounts.",
	}, []string{"unit"})
	for _, unit := range exported {
		price := p.Price(unit)
		g.WithLabelValues(unit).Set(price.Tiers[0].Dollars)
	}
	if err := reg.Register(g); err != nil {
		return fmt.Errorf("register prices: %w", err)
	}
	return nil
}
