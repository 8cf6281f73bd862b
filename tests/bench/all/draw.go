package all

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"

	"github.com/promlake/promlake/tests/bench/table"
)

// Pixels of the drawing.
const (
	textWidth = 640
	barWidth  = 360
	rowHeight = 18
	margin    = 24
)

// limit is the largest ratio, and the inverse of the smallest one, that a bar shows in full.
const limit = 10.0

// draw returns an SVG with a bar for each ratio, on a logarithmic axis with 1 in the middle: to the
// left Promlake takes less than its peer, to the right more. A black line is what is wanted.
func draw(all []table.Comparison) string {
	var rows strings.Builder
	n := 0
	for _, c := range all {
		ratio, known := c.Ratio()
		if !known {
			continue
		}
		y := margin + n*rowHeight
		n++
		one, end := position(1), position(ratio)
		colour := "#2f7d4f"
		if ratio > 1 {
			colour = "#b5483a"
		}
		fmt.Fprintf(&rows, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", textWidth-8, y+13, escaped(c.Name+", "+c.Unit))
		fmt.Fprintf(&rows, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", min(one, end), y+3, math.Abs(end-one), rowHeight-6, colour)
		if goal, known := c.Goal(); known {
			x := position(goal)
			fmt.Fprintf(&rows, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#000\" stroke-width=\"2\"/>\n", x, x, y+1, y+rowHeight-1)
		}
		fmt.Fprintf(&rows, "<text x=\"%d\" y=\"%d\">%.2f</text>\n", textWidth+barWidth+8, y+13, ratio)
	}
	height := 2*margin + n*rowHeight
	var out strings.Builder
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", textWidth+barWidth+56, height)
	out.WriteString("<title>Promlake's figures divided by VictoriaMetrics'; less is better</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	for _, at := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10} {
		x := position(at)
		fmt.Fprintf(&out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ccc\"/>\n", x, x, margin, height-margin)
		fmt.Fprintf(&out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n", x, height-margin+16, at)
	}
	return out.String() + rows.String() + "</svg>\n"
}

// position is the x of a ratio.
func position(ratio float64) float64 {
	clipped := math.Log10(min(max(ratio, 1/limit), limit))
	return textWidth + barWidth*(clipped+1)/2
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder does not fail
	return b.String()
}
