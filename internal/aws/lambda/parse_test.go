package lambda

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/jsontext"
)

// members decodes an object as parse does.
func members(doc []byte) (map[string]string, error) {
	p, got := jsontext.New(doc), map[string]string{}
	err := p.Object(func(key string) error {
		key = strings.Clone(key)
		if p.Peek() != '"' {
			raw, err := p.Raw()
			got[key] = string(bytes.TrimRight(raw, " \t\r\n"))
			return err
		}
		v, err := text(p)
		got[key] = "string " + v
		return err
	})
	if err == nil {
		err = p.End()
	}
	return got, err
}

// reference decodes an object with encoding/json.
func reference(t *testing.T, doc []byte) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(doc, &raw))
	want := map[string]string{}
	for k, v := range raw {
		var text string
		if v[0] == '"' {
			require.NoError(t, json.Unmarshal(v, &text))
			want[k] = "string " + text
			continue
		}
		want[k] = string(v)
	}
	return want
}

func FuzzMembers(f *testing.F) {
	for _, doc := range []string{
		`{}`, ` { "a" : "b" , "c" : [ 1 , { "d" : "\"" } ] } `, `{"a":"\u00e4\ud83d\ude00\n\/","a":"twice"}`, `{"a":"x\\\\","b":"\\"}`, `{"ä":"ö\u0000"}`,
		`{"a":-1.5e+9,"b":true,"c":null,"d":[],"e":{"f":"}]\"{["}}`, "{\"a\":\"\xff\xfe\"}", `{"a":"b"}}`, `{"a":"b",}`, `{"":""}`, `{"\ud800":"\ud800x"}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := members(doc)
		trimmed := bytes.TrimLeft(doc, " \t\r\n")
		if !json.Valid(doc) || !utf8.Valid(doc) || trimmed[0] != '{' {
			return // only a panic would be a failure
		}
		require.NoError(t, err)
		require.Equal(t, reference(t, doc), got)
	})
}

// TestParserIsLinear uses documents for which a careless parser would read every byte many times.
func TestParserIsLinear(t *testing.T) {
	for _, doc := range []string{
		`{"a":"` + strings.Repeat(`\\`, 3<<20) + `"}`,
		`{"a":"` + strings.Repeat(`\"`, 3<<20) + `"}`,
		`{"a":` + strings.Repeat(`[`, 3<<20) + strings.Repeat(`]`, 3<<20) + `}`,
	} {
		p := jsontext.New([]byte(doc))
		require.NoError(t, p.Object(func(string) error { return p.Skip() }))
	}
}

func TestBodyReadsAsBase64Does(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		plain := make([]byte, n)
		for i := range plain {
			plain[i] = byte(rnd.Uint32())
		}
		text := []byte(base64.StdEncoding.EncodeToString(plain))
		for _, wrap := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader,
			func(r io.Reader) io.Reader { return &sizes{r, rnd} },
		} {
			e := httpEvent{Body: text, Base64: true}
			b := e.body()
			require.Len(t, b.rest, n)
			got, err := io.ReadAll(wrap(b))
			require.NoError(t, err)
			require.True(t, bytes.Equal(plain, got), n)
		}
	}
}

// sizes reads in pieces of random sizes.
type sizes struct {
	r   io.Reader
	rnd *rand.Rand
}

func (s *sizes) Read(p []byte) (int, error) { return s.r.Read(p[:1+s.rnd.IntN(min(9, len(p)))]) }

func TestBodyThatIsNoBase64(t *testing.T) {
	for _, text := range []string{"A", "AA", "AAA", "AA=A", "AAAA*AAA", "====", "AAAA=", "ä"} {
		e := httpEvent{Body: []byte(text), Base64: true}
		_, err := io.ReadAll(e.body())
		require.Error(t, err, text)
		_, err = io.ReadAll(iotest.OneByteReader(e.body()))
		require.Error(t, err, text)
	}
}

func TestBodyWithEscapes(t *testing.T) {
	e, err := parse([]byte(`{"version":"2.0","requestContext":{"http":{"method":"POST"}},"isBase64Encoded":true,"body":"AA\/\/\u0041A=="}`))
	require.NoError(t, err)
	got, err := io.ReadAll(e.request.body())
	require.NoError(t, err)
	want, err := base64.StdEncoding.DecodeString("AA//AA==")
	require.NoError(t, err)
	require.Equal(t, want, got)
}
