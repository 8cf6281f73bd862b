package cost

import (
	"bytes"
	"cmp"
	_ "embed" // of the price list
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

//go:embed prices.json
var pricesJSON []byte

// Units of prices.json.
const (
	S3Put          = "s3_put" // also LIST
	S3Get          = "s3_get"
	S3Storage      = "s3_gb_month"
	LambdaRequest  = "lambda_request"
	LambdaArm64    = "lambda_gb_second_arm64"
	LambdaX86      = "lambda_gb_second_x86_64"
	LambdaStreamed = "lambda_streamed_gb" // of an answer, beyond its first 6 MB
	SQSChunk       = "sqs_chunk"          // 64 KiB of a request
	SQSFIFOChunk   = "sqs_fifo_chunk"
	HTTPAPIRequest = "http_api_request" // 512 KiB of a request
	LogsIngested   = "logs_gb"
	LogsStored     = "logs_gb_month"
	Alarm          = "alarm_month"
	Metric         = "metric_month"
	InternetOut    = "internet_gb"
	RegionOut      = "region_gb" // to another region
	KMSKey         = "kms_key_month"
	KMSRequest     = "kms_request"
	// Lambda Managed Instances: the price of EC2 plus 15 %
	InstanceHour    = "managed_m7g_large_hour"
	AMPSample       = "amp_sample"
	AMPStorage      = "amp_gb_month"
	AMPQuerySample  = "amp_query_sample"
	DefaultRegion   = "us-east-1" // its prices replace unknown ones
	bytesOfGB       = 1 << 30     // as AWS defines it for storage
	chunkBytes      = 64 << 10
	httpAPIBytes    = 512 << 10
	maxMessageBytes = 1 << 20
)

// Prices is the price list of a region.
type Prices struct {
	Region  string
	Checked string // date, YYYY-MM-DD
	units   map[string]Price
}

// Price is the price of a unit.
type Price struct {
	Tiers  []Tier `json:"tiers"`
	Source string `json:"source"` // AWS's page
	// another source of the price; "" if there is none
	ConfirmedBy string `json:"confirmed_by,omitempty"`
}

// Tier is a price for the units of a month up to a number; the last tier is unlimited.
type Tier struct {
	UpTo    float64 `json:"up_to,omitempty"`
	Dollars float64 `json:"dollars"`
}

// Dollars returns the price of a month's quantity, tier by tier.
func (p *Price) Dollars(quantity float64) (sum float64) {
	from := 0.0
	for _, t := range p.Tiers {
		to := cmp.Or(t.UpTo, math.Inf(1))
		if quantity > from {
			sum += (min(quantity, to) - from) * t.Dollars
		}
		from = to
	}
	return sum
}

// ReadPrices returns the price list of a region. Prices that the region's list does not have are
// those of us-east-1.
func ReadPrices(region string) (*Prices, error) {
	var f priceFile
	dec := json.NewDecoder(bytes.NewReader(pricesJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("read price list: %w", err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("read price list: version %d, want 1", f.Version)
	}
	r, ok := f.Regions[region]
	if !ok {
		return nil, fmt.Errorf("region %q: no prices for it, only for %s", region, strings.Join(slices.Sorted(maps.Keys(f.Regions)), ", "))
	}
	units := maps.Clone(f.Regions[DefaultRegion])
	maps.Copy(units, r)
	return &Prices{Region: region, Checked: f.Checked, units: units}, nil
}

// Default returns the price list of DefaultRegion.
var Default = sync.OnceValue(func() *Prices {
	p, err := ReadPrices(DefaultRegion)
	if err != nil {
		panic(fmt.Sprintf("read the price list of the program: %v", err)) // a test reads it
	}
	return p
})

// Price returns the price of a unit, which must be one of prices.json.
func (p *Prices) Price(unit string) Price {
	price, ok := p.units[unit]
	if !ok {
		panic("no price of unit " + unit) // units are constants
	}
	return price
}

// Unconfirmed lists the units whose price has no second source.
func (p *Prices) Unconfirmed() (out []string) {
	for _, unit := range slices.Sorted(maps.Keys(p.units)) {
		if p.units[unit].ConfirmedBy == "" {
			out = append(out, unit)
		}
	}
	return out
}

type priceFile struct {
	Version int                         `json:"version"`
	Checked string                      `json:"checked"`
	Note    string                      `json:"note"`
	Regions map[string]map[string]Price `json:"regions"`
}

// exported are the units whose prices dashboards multiply with counters of processes.
var exported = []string{
	S3Put, S3Get, S3Storage, LambdaRequest, LambdaArm64, LambdaX86, SQSChunk, SQSFIFOChunk, HTTPAPIRequest, LogsIngested,
}

// Register adds promlake_price_dollars{unit} to reg: the price of the first unit of a month in a
// region, or in us-east-1 if the region's prices are unknown.
func Register(reg prometheus.Registerer, region string) error {
	p, err := ReadPrices(region)
	if err != nil {
		p = Default()
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
