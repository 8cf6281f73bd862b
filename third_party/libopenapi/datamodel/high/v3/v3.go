// Package v3 has the types of the OpenAPI document with the fields that Prometheus' API sets.
package v3

import (
	"github.com/pb33f/libopenapi/datamodel/high/base"
	"github.com/pb33f/libopenapi/orderedmap"
)

// Document describes an API.
type Document struct {
	Version    string
	Info       *base.Info
	Servers    []*Server
	Tags       []*base.Tag
	Paths      *Paths
	Components *Components
}

// Render returns an empty document.
func (*Document) Render() ([]byte, error) { return nil, nil }

// Server is where an API is.
type Server struct{ URL string }

// Paths are the paths of an API.
type Paths struct {
	PathItems *orderedmap.Map[string, *PathItem]
}

// PathItem has the operations of a path.
type PathItem struct{ Get, Post, Put, Delete *Operation }

// Operation is what a request to a path does.
type Operation struct {
	OperationId, Summary, Description string //nolint:revive // as Prometheus' API spells it
	Tags                              []string
	Parameters                        []*Parameter
	RequestBody                       *RequestBody
	Responses                         *Responses
}

// Parameter is one of a request.
type Parameter struct {
	Name, In, Description string
	Required, Explode     *bool
	Schema                *base.SchemaProxy
	Examples              *orderedmap.Map[string, *base.Example]
}

// RequestBody is the body of a request.
type RequestBody struct {
	Description string
	Required    *bool
	Content     *orderedmap.Map[string, *MediaType]
}

// Responses are the answers of an operation by status code.
type Responses struct {
	Codes   *orderedmap.Map[string, *Response]
	Default *Response
}

// Response is an answer.
type Response struct {
	Description string
	Content     *orderedmap.Map[string, *MediaType]
}

// MediaType is a form of a body.
type MediaType struct {
	Schema, ItemSchema *base.SchemaProxy
	Examples           *orderedmap.Map[string, *base.Example]
}

// Components are the schemas that others name.
type Components struct {
	Schemas *orderedmap.Map[string, *base.SchemaProxy]
}
