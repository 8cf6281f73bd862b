// Package libopenapi replaces the library with which Prometheus' API renders an OpenAPI document of
// itself, twice at each start, which took 0.1 s of a processor. Promlake serves no such document.
// The packages below have the types and functions that the API calls, and do nothing.
package libopenapi
