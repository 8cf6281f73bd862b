package app

// Builders are those of Run.
var Builders = builders
