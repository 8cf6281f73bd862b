//go:build !linux

package node

func statFilesystem(string) (filesystemStat, error) { return filesystemStat{}, errUnsupported }

func collectUname(emit) error { return errUnsupported }
