//go:build !linux

package demo

func statFilesystem(string) (filesystemStat, error) { return filesystemStat{}, errUnsupported }

func collectUname(emit) error { return errUnsupported }
