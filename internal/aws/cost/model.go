// Package cost estimates what a load costs on AWS. It is a pure model of requests, function time,
// bytes and prices:
//
//	Load (writes and queries)
//	measured.json (resources per sample, request and query)   ─►  Bill (lines by component)
//	prices.json (prices of AWS)
//
// Every line of a bill has the formula of its quantity. Prices are list prices without free tiers
// and discounts. A month has 30 days.
package cost

import (
	"fmt"
	"math"
	"time"
)

// sheet collects the lines of one load's bill.
type sheet struct {
	Load
	m    *Measured
	bill Bill
}

// Estimate returns the monthly cost of a load. It is pure.
func Estimate(l Load, p *Prices, m *Measured) (*Bill, error) {
	if err := l.Check(); err != nil {
		return nil, fmt.Errorf("check load: %w", err)
	}
	if p.Region != l.Region {
		return nil, fmt.Errorf("check load: region %q, but the prices are those of %q", l.Region, p.Region)
	}
	if body := l.Sent() * m.WireBytes.Value; body > maxRequestBytes {
		return nil, fmt.Errorf("check load: samples-per-send: %.0f samples are about %.1f MB, and a function takes %.1f MB: want at most %.0f",
			l.Sent(), body/1e6, maxRequestBytes/1e6, maxRequestBytes/m.WireBytes.Value)
	}
	w := &sheet{Load: l, m: m, bill: Bill{Samples: l.Samples()}}
	w.write()
	w.compaction()
	w.schedule()
	w.storage()
	w.queries()
	w.rules()
	w.replica()
	w.logs()
	w.key()
	w.bill.settle(p)
	return &w.bill, nil
}

func (w *sheet) add(c Component, what string, quantity float64, unit, formula string) {
	w.bill.Lines = append(w.bill.Lines, Line{Component: c, What: what, Quantity: quantity, Unit: unit, Formula: formula})
}

// perMonth is the number of seconds per month.
const perMonth = float64(Month / time.Second)

// vCPU is the memory in MiB that has one core. More memory has more cores, of which an invocation
// uses only one.
const vCPU = 1769

// work is the work of one invocation.
type work struct {
	cpu  float64 // seconds of one core
	wait float64 // seconds of waiting for other services
}

// seconds returns the duration of work in a function with mib of memory. With less than one core,
// processor time takes longer. Billed time is rounded up to a millisecond.
func (w *sheet) seconds(k work, mib int) float64 {
	share := min(1, float64(mib)/vCPU)
	s := (k.cpu+w.m.InvokeCPU.Value)/share + k.wait
	return math.Ceil(s*1000-1e-9) / 1000
}

// function adds a function's requests and its memory times duration. n is the number of invocations
// per month.
func (w *sheet) function(c Component, n float64, k work, mib int, formula string) {
	gb := LambdaArm64
	if w.Arch != "arm64" {
		gb = LambdaX86
	}
	w.add(c, "invocations", n, LambdaRequest, formula)
	w.add(c, "GB-seconds", n*w.seconds(k, mib)*float64(mib)/1024, gb, "invocations × seconds × memory; seconds = CPU ÷ share of a core + waiting")
}
