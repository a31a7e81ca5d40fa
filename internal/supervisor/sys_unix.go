//go:build unix && !linux

package supervisor

import (
	"os/signal"
	"syscall"
)

func newGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func adoptOrphans() {}

func descendants(int, []int) []int { return nil }

func listsChildren() bool { return true }

func ignored(s syscall.Signal) bool { return signal.Ignored(s) }

const adopts = false
