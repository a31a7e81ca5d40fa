//go:build !linux

package load

import "os/exec"

func pin() (Pinning, error) { return Pinning{-1, "not pinned (Linux only)"}, nil }

func dieWithParent(*exec.Cmd) {}
