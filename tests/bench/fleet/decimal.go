package fleet

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// addRises adds lap times last − first to the values, in the shortest decimals of the values, and
// rounds once, at the end.
func addRises(v []float64, lap int) ([]float64, error) {
	d := make([]*big.Int, len(v))
	scale := 0
	for _, x := range v {
		scale = max(scale, decimals(x))
	}
	for i, x := range v {
		var err error
		if d[i], err = unscaled(x, scale); err != nil {
			return nil, err
		}
	}
	rise := new(big.Int).Sub(d[len(d)-1], d[0])
	rise.Mul(rise, big.NewInt(int64(lap)))
	out := make([]float64, len(v))
	for i := range d {
		x, err := strconv.ParseFloat(fmt.Sprintf("%se-%d", new(big.Int).Add(d[i], rise), scale), 64)
		if err != nil {
			return nil, fmt.Errorf("round decimal: %w", err)
		}
		out[i] = x
	}
	return out, nil
}

// decimals returns the number of decimal places of the shortest decimal of x.
func decimals(x float64) int {
	_, fraction, _ := strings.Cut(strconv.FormatFloat(x, 'f', -1, 64), ".")
	return len(fraction)
}

// unscaled returns the shortest decimal of x, times 10^scale.
func unscaled(x float64, scale int) (*big.Int, error) {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", scale-len(fraction)), 10)
	if !ok {
		return nil, fmt.Errorf("%s is no decimal", text)
	}
	return n, nil
}
