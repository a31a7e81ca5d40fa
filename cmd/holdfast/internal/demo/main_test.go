package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Environment of a process that plays a role instead of running tests.
const (
	roleEnv  = "HOLDFAST_DEMO_TEST_ROLE"
	shiftEnv = "HOLDFAST_DEMO_TEST_SHIFT"
	urlEnv   = "HOLDFAST_DEMO_TEST_URL"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// play is the main function of a test's process.
func play(role string) int {
	var s Shift
	if err := json.Unmarshal([]byte(os.Getenv(shiftEnv)), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	switch role {
	case "work":
		if err := Work(context.Background(), os.Getenv(urlEnv), s, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "crash":
		fmt.Println(`{"ready":true}`)
		fmt.Fprintln(os.Stderr, "crashing as told")
		return 3
	case "garbage":
		fmt.Println("Hello, world!")
		_, _ = io.Copy(io.Discard, os.Stdin) // and it goes on running
		return 0
	case "silent":
		return 0
	case "impatient":
		fmt.Println(`{"outcome":{"buyer":1}}`)
		return 0
	case "lazy":
		fmt.Println(`{"ready":true}`)
		fmt.Println(`{"figures":{"commands":1}}`)
		return 0
	case "deaf": // it does not notice the end of its input
		fmt.Println(`{"ready":true}`)
		fmt.Println(`{"outcome":{"buyer":1}}`)
		select {}
	}
	fmt.Fprintf(os.Stderr, "no role %q\n", role)
	return 2
}

// spawnRoles returns a Spawn of this test binary: process i plays roles[i-1], those
// beyond play the last one.
func spawnRoles(t *testing.T, roles ...string) Spawn {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, redisURL string, s Shift) *exec.Cmd {
		shift, err := json.Marshal(s)
		if err != nil {
			t.Error(err)
		}
		cmd := exec.CommandContext(ctx, exe)
		cmd.Env = append(os.Environ(),
			roleEnv+"="+roles[min(s.Process, len(roles))-1],
			shiftEnv+"="+string(shift),
			urlEnv+"="+redisURL,
			"GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE"))
		return cmd
	}
}
