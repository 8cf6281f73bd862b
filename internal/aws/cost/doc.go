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
