package ingest

import (
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

type (
	item     = remotewritetest.Item
	content  = remotewritetest.Content
	protocol = remotewrite.Protocol
)

const (
	protocolV1 = remotewrite.V1
	protocolV2 = remotewrite.V2
	someTime   = remotewritetest.SomeTime
)

var (
	gauge        = remotewritetest.Gauge
	at           = remotewritetest.At
	encodeV1     = remotewritetest.EncodeV1
	encodeV2     = remotewritetest.EncodeV2
	packed       = remotewritetest.Body
	want         = remotewritetest.Want
	lsetText     = remotewritetest.LsetText
	floatText    = remotewritetest.FloatText
	histText     = remotewritetest.HistText
	exemplarText = remotewritetest.ExemplarText
	many         = remotewritetest.ManyLabels
	long         = remotewritetest.Long
	everything   = remotewritetest.Everything
	randomItems  = remotewritetest.RandomItems
	fuzzItems    = remotewritetest.FuzzItems
	encode       = remotewritetest.Message
)
