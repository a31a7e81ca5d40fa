//go:build unix && !linux

package supervisor

import "syscall"

func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dieWith(int) bool { return true }

func adoptOrphans() {}
