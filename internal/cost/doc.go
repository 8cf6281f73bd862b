// Package cost says what a load costs on AWS: a pure model of requests, function time, bytes and
// prices.
//
//	Load (what is sent and asked) + measured.json (what a sample takes) + prices.json (what AWS takes) → Bill (lines, by component)
//
// Every line of a bill has the formula that it follows. Prices are list prices without free tiers
// and discounts; a month has 30 days.
package cost
