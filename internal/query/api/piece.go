package api

import (
	"context"
	"io"
	"net/http"

	"github.com/promlake/promlake/internal/query/api/respond"
	"github.com/promlake/promlake/internal/query/divide"
)

// Piecer is a Backend that evaluates pieces of range queries which other processes divide.
type Piecer interface {
	// Piece returns the answer to a piece. Errors are answered as divide.StatusOf says.
	Piece(ctx context.Context, p *divide.Piece) (*divide.Answer, error)
}

// piece answers /api/v1/piece: the body is a piece as JSON, the answer an Arrow IPC stream.
func (s *server) piece(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var p *divide.Piece
	if err == nil {
		p, err = divide.Parse(body)
	}
	if err == nil {
		err = s.settings.Expressions.Check(p.Query)
	}
	if err != nil {
		s.respond.Error(w, r, respond.BadData, err)
		return
	}
	answer, err := s.pieces.Piece(r.Context(), p)
	var out func(io.Writer) error
	if err == nil {
		out, err = answer.Encode(p)
	}
	if err != nil {
		s.respond.Error(w, r, respond.Failure{Kind: "piece", Code: divide.StatusOf(err)}, err)
		return
	}
	w.Header().Set("Content-Type", divide.MediaType)
	if err := out(w); err != nil { // the reader notices that the answer is incomplete
		s.logger.Debug("write the answer to a piece", "err", err)
		panic(http.ErrAbortHandler)
	}
}
