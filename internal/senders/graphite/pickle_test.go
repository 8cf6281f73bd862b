package graphite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/graphite"
)

// The points that Python 3 has written by pickle.dumps(points, protocol=index):
//
//	[("servers.web01.load", (1700000000, 0.7)), ("disk.used;host=web01;path=/", (1700000000.5, 12)),
//	 ("ü.big", (1700000001, 2**70)), ("neg", (1700000002, -3)),
//	 ("servers.web01.load", (1700000003, True)), ("t", (1700000004, "1.5")),
//	 ("inf", (1700000005, float("inf"))), ("small", (1700000006, 70000))]
var dumps = []string{
	"(lp0\x0a(Vservers.web01.load\x0ap1\x0a(I1700000000\x0aF0.7\x0atp2\x0atp3\x0aa(Vdisk.used;host=web01;path=/\x0ap4\x0a(F1700000000.5\x0aI12\x0atp5\x0atp6\x0aa(V\xfc.big\x0ap7\x0a(I1700000001\x0aL1180591620717411303424L\x0atp8\x0atp9\x0aa(Vneg\x0ap10\x0a(I1700000002\x0aI-3\x0atp11\x0atp12\x0aa(g1\x0a(I1700000003\x0aI01\x0atp13\x0atp14\x0aa(Vt\x0ap15\x0a(I1700000004\x0aV1.5\x0ap16\x0atp17\x0atp18\x0aa(Vinf\x0ap19\x0a(I1700000005\x0aFinf\x0atp20\x0atp21\x0aa(Vsmall\x0ap22\x0a(I1700000006\x0aI70000\x0atp23\x0atp24\x0aa.",
	"]q\x00((X\x12\x00\x00\x00servers.web01.loadq\x01(J\x00\xf1SeG?\xe6fffffftq\x02tq\x03(X\x1b\x00\x00\x00disk.used;host=web01;path=/q\x04(GA\xd9T\xfc@ \x00\x00K\x0ctq\x05tq\x06(X\x06\x00\x00\x00\xc3\xbc.bigq\x07(J\x01\xf1SeL1180591620717411303424L\x0atq\x08tq\x09(X\x03\x00\x00\x00negq\x0a(J\x02\xf1SeJ\xfd\xff\xff\xfftq\x0btq\x0c(h\x01(J\x03\xf1SeI01\x0atq\x0dtq\x0e(X\x01\x00\x00\x00tq\x0f(J\x04\xf1SeX\x03\x00\x00\x001.5q\x10tq\x11tq\x12(X\x03\x00\x00\x00infq\x13(J\x05\xf1SeG\x7f\xf0\x00\x00\x00\x00\x00\x00tq\x14tq\x15(X\x05\x00\x00\x00smallq\x16(J\x06\xf1SeJp\x11\x01\x00tq\x17tq\x18e.",
	"\x80\x02]q\x00(X\x12\x00\x00\x00servers.web01.loadq\x01J\x00\xf1SeG?\xe6ffffff\x86q\x02\x86q\x03X\x1b\x00\x00\x00disk.used;host=web01;path=/q\x04GA\xd9T\xfc@ \x00\x00K\x0c\x86q\x05\x86q\x06X\x06\x00\x00\x00\xc3\xbc.bigq\x07J\x01\xf1Se\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x86q\x08\x86q\x09X\x03\x00\x00\x00negq\x0aJ\x02\xf1SeJ\xfd\xff\xff\xff\x86q\x0b\x86q\x0ch\x01J\x03\xf1Se\x88\x86q\x0d\x86q\x0eX\x01\x00\x00\x00tq\x0fJ\x04\xf1SeX\x03\x00\x00\x001.5q\x10\x86q\x11\x86q\x12X\x03\x00\x00\x00infq\x13J\x05\xf1SeG\x7f\xf0\x00\x00\x00\x00\x00\x00\x86q\x14\x86q\x15X\x05\x00\x00\x00smallq\x16J\x06\xf1SeJp\x11\x01\x00\x86q\x17\x86q\x18e.",
	"\x80\x03]q\x00(X\x12\x00\x00\x00servers.web01.loadq\x01J\x00\xf1SeG?\xe6ffffff\x86q\x02\x86q\x03X\x1b\x00\x00\x00disk.used;host=web01;path=/q\x04GA\xd9T\xfc@ \x00\x00K\x0c\x86q\x05\x86q\x06X\x06\x00\x00\x00\xc3\xbc.bigq\x07J\x01\xf1Se\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x86q\x08\x86q\x09X\x03\x00\x00\x00negq\x0aJ\x02\xf1SeJ\xfd\xff\xff\xff\x86q\x0b\x86q\x0ch\x01J\x03\xf1Se\x88\x86q\x0d\x86q\x0eX\x01\x00\x00\x00tq\x0fJ\x04\xf1SeX\x03\x00\x00\x001.5q\x10\x86q\x11\x86q\x12X\x03\x00\x00\x00infq\x13J\x05\xf1SeG\x7f\xf0\x00\x00\x00\x00\x00\x00\x86q\x14\x86q\x15X\x05\x00\x00\x00smallq\x16J\x06\xf1SeJp\x11\x01\x00\x86q\x17\x86q\x18e.",
	"\x80\x04\x95\xd7\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x12servers.web01.load\x94J\x00\xf1SeG?\xe6ffffff\x86\x94\x86\x94\x8c\x1bdisk.used;host=web01;path=/\x94GA\xd9T\xfc@ \x00\x00K\x0c\x86\x94\x86\x94\x8c\x06\xc3\xbc.big\x94J\x01\xf1Se\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x86\x94\x86\x94\x8c\x03neg\x94J\x02\xf1SeJ\xfd\xff\xff\xff\x86\x94\x86\x94h\x01J\x03\xf1Se\x88\x86\x94\x86\x94\x8c\x01t\x94J\x04\xf1Se\x8c\x031.5\x94\x86\x94\x86\x94\x8c\x03inf\x94J\x05\xf1SeG\x7f\xf0\x00\x00\x00\x00\x00\x00\x86\x94\x86\x94\x8c\x05small\x94J\x06\xf1SeJp\x11\x01\x00\x86\x94\x86\x94e.",
	"\x80\x05\x95\xd7\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x12servers.web01.load\x94J\x00\xf1SeG?\xe6ffffff\x86\x94\x86\x94\x8c\x1bdisk.used;host=web01;path=/\x94GA\xd9T\xfc@ \x00\x00K\x0c\x86\x94\x86\x94\x8c\x06\xc3\xbc.big\x94J\x01\xf1Se\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@\x86\x94\x86\x94\x8c\x03neg\x94J\x02\xf1SeJ\xfd\xff\xff\xff\x86\x94\x86\x94h\x01J\x03\xf1Se\x88\x86\x94\x86\x94\x8c\x01t\x94J\x04\xf1Se\x8c\x031.5\x94\x86\x94\x86\x94\x8c\x03inf\x94J\x05\xf1SeG\x7f\xf0\x00\x00\x00\x00\x00\x00\x86\x94\x86\x94\x8c\x05small\x94J\x06\xf1SeJp\x11\x01\x00\x86\x94\x86\x94e.",
}

// As Python 2 writes them.
var old = []string{
	"(lp0\x0a(S'py2.a\x5cxc3\x5cxbc'\x0ap1\x0a(I1700000000\x0aF0.5\x0atp2\x0atp3\x0aa(g1\x0a(L1700000001L\x0aI01\x0atp4\x0atp5\x0aa.",
	"\x80\x02]q\x00U\x05py2.bq\x01J\x00\xf1SeG?\xe0\x00\x00\x00\x00\x00\x00\x86q\x02\x86q\x03a.",
}

// Bytes and lists in place of texts and tuples.
const others = "\x80\x04\x95#\x00\x00\x00\x00\x00\x00\x00]\x94C\x0abytes.path\x94]\x94(J\x00\xf1Se\x8a\x05\x00\x00\x00\x00\xfee\x86\x94a."

var refused = []string{
	"\x80\x04\x95 \x00\x00\x00\x00\x00\x00\x00\x8c\x08datetime\x94\x8c\x04date\x94\x93\x94C\x04\x07\xe4\x01\x01\x94\x85\x94R\x94.",
	"cos\x0asystem\x0a(S'true'\x0atR.",
}

func lines(t testing.TB, message string) (out []string, bad int, why, err error) {
	t.Helper()
	var all strings.Builder
	bad, why, err = graphite.FromPickle([]byte(message), func(lines []byte) { all.Write(lines) })
	return slices.Collect(strings.Lines(all.String())), bad, why, err
}

func TestPickle(t *testing.T) {
	want := []string{
		"servers.web01.load 0.7 1.7e+09\n", "disk.used;host=web01;path=/ 12 1.7000000005e+09\n", "ü.big 1.1805916207174113e+21 1.700000001e+09\n",
		"neg -3 1.700000002e+09\n", "servers.web01.load 1 1.700000003e+09\n", "t 1.5 1.700000004e+09\n", "inf +Inf 1.700000005e+09\n", "small 70000 1.700000006e+09\n",
	}
	for protocol, dump := range dumps {
		got, bad, why, err := lines(t, dump)
		require.NoError(t, err, protocol)
		require.Zero(t, bad, why)
		require.Equal(t, want, got, protocol)
		for end := range dump {
			_, _, _, err := lines(t, dump[:end])
			require.ErrorIs(t, err, graphite.ErrPickle, "protocol %d, %d bytes", protocol, end)
		}
	}
	b := decode(t, remotewrite.NewGeneration(1), strings.Join(want, ""))
	require.NoError(t, b.Err)
	require.Equal(t, `{__name__="disk.used", host="web01", path="/"} 12 1700000000500`, samples(b)[1])
	got, _, _, err := lines(t, old[0])
	require.NoError(t, err)
	require.Equal(t, []string{"py2.aü 0.5 1.7e+09\n", "py2.aü 1 1.700000001e+09\n"}, got)
	got, _, _, err = lines(t, old[1])
	require.NoError(t, err)
	require.Equal(t, []string{"py2.b 0.5 1.7e+09\n"}, got)
	got, _, _, err = lines(t, others)
	require.NoError(t, err)
	require.Equal(t, []string{"bytes.path -8.589934592e+09 1.7e+09\n"}, got)
}

func TestPickleRefuses(t *testing.T) {
	for _, message := range refused {
		_, _, _, err := lines(t, message)
		require.ErrorIs(t, err, graphite.ErrPickle)
		require.ErrorContains(t, err, "nothing is executed")
	}
	for message, want := range map[string]string{
		"":                                      "it ends too early at byte 0",
		"K\x01.":                                "it is not a list of points",
		"\x80\x06.":                             "protocol 6, of 0 to 5",
		"h\x01.":                                "nothing was remembered as 1",
		"K\x01K\x02a.":                          "append to what is no list",
		"(.":                                    "ends with a mark",
		"a.":                                    "the stack is empty",
		"t.":                                    "there is no mark",
		"X\xff\xff\xff\xffa.":                   "it ends too early",
		"S'a\n.":                                "a text without quotes",
		"Iabc\n.":                               `"abc" is not an integer`,
		"Fabc\n.":                               `"abc" is not a number`,
		"V\\u12\n.":                             "a text with a bad escape",
		"(" + strings.Repeat("N", 1<<20) + "l.": "it has more than 524288 values",
		// One point with a path of 1,000 bytes, remembered and repeated.
		"](U\xfa" + strings.Repeat("x", 250) + "K\x01K\x01\x86\x86q\x01" + strings.Repeat("h\x01", 5000) + "e.": "its lines take more than 16 times its 10",
	} {
		_, _, _, err := lines(t, message)
		require.ErrorIs(t, err, graphite.ErrPickle, "%.40q", message)
		require.ErrorContains(t, err, want, "%.40q", message)
	}
}

// TestBadPoints cost no other point.
func TestBadPoints(t *testing.T) {
	point := func(path string) string { return fmt.Sprintf("(S'%s'\n(I5\nI6\ntt", path) }
	for bad, want := range map[string]string{
		"I1\n":                 "a point is not (path, (time, value))",
		"(S'a'\n(I5\ntt":       "a point is not",
		"(S'a'\n(I5\nNtt":      `path "a": time or value is not a number`,
		"(S'a'\n(S'x'\nI6\ntt": `path "a": "x" is not a number`,
		point("a b"):           `the path "a b" is empty or has white space`,
		point(`a\n`):           "white space",
		point(""):              "is empty",
	} {
		got, n, why, err := lines(t, "(lp0\n"+point("one")+"a"+bad+"a"+point("two")+"a.")
		require.NoError(t, err, bad)
		require.Equal(t, []string{"one 6 5\n", "two 6 5\n"}, got, bad)
		require.Equal(t, 1, n)
		require.ErrorContains(t, why, want)
	}
}

// FuzzPickle: whatever is read becomes lines that are read.
func FuzzPickle(f *testing.F) {
	for _, d := range append(append([]string{others}, dumps...), append(old, refused...)...) {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got, _, _, err := lines(t, string(message))
		if err != nil {
			require.ErrorIs(t, err, graphite.ErrPickle)
		}
		for _, line := range got {
			b := decode(t, remotewrite.NewGeneration(1), line)
			require.Equal(t, 1, len(b.Floats)+b.Rejected, "%q", line)
		}
	})
}

// BenchmarkPickle reads a message of 1,000 points as carbon's relay sends them.
func BenchmarkPickle(b *testing.B) {
	var message strings.Builder
	message.WriteString("\x80\x02](")
	for i := range 1000 {
		path := fmt.Sprintf("servers.web%02d.cpu.%d.user", i/50, i%50)
		fmt.Fprintf(&message, "U%c%sJ\x00\xf1SeG?\xe0\x00\x00\x00\x00\x00\x00\x86\x86", rune(len(path)), path)
	}
	message.WriteString("e.")
	text := []byte(message.String())
	for b.Loop() {
		bad, why, err := graphite.FromPickle(text, func([]byte) {})
		require.NoError(b, err)
		require.Zero(b, bad, why)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/sample")
}
