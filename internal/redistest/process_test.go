package redistest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestProcess_TalksInLines(t *testing.T) {
	p := StartProcess(t, "echo", "a b", "c")
	if got := p.Expect(t, "args "); got != "a b,c" {
		t.Errorf("args = %q", got)
	}
	p.Send("one")
	p.Send("two")
	if got := p.Expect(t, "echo "); got != "one" {
		t.Errorf("first line = %q", got)
	}
	if got := p.ReadLine(t, Patience); got != "echo two" {
		t.Errorf("second line = %q", got)
	}
	p.Send("three")
	if err := p.Wait(); err != nil {
		t.Errorf("Wait() = %v", err)
	}
	if got := p.Expect(t, "echo "); got != "three" { // readable after the end
		t.Errorf("last line = %q", got)
	}
}

func TestProcess_AwaitFindsAnAnswerInAnyOrder(t *testing.T) {
	p := StartProcess(t, "echo")
	for _, line := range []string{"1 one", "2 two", "3 three"} {
		p.Send(line)
	}
	if got := p.Await(t, "echo 3 ", Patience); got != "three" {
		t.Errorf("Await(3) = %q", got)
	}
	if got := p.Await(t, "echo 1 ", Patience); got != "one" {
		t.Errorf("Await(1) = %q", got)
	}
	p.Expect(t, "args")
	wantFailure(t, `await "echo 4"`, func(tb testing.TB) { p.Await(tb, "echo 4", 30*time.Millisecond) })
}

func TestProgram_IsAProcess(t *testing.T) {
	p := StartProgram(t, "cat")
	p.Send("hello")
	p.Expect(t, "hello")
	if err := p.Wait(); err != nil {
		t.Errorf("Wait() = %v", err)
	}
	wantFailure(t, "start role no-such-program", func(tb testing.TB) { StartProgram(tb, "no-such-program") })
}

func TestProcess_PauseAndKill(t *testing.T) {
	p := StartProcess(t, "echo")
	p.Expect(t, "args")
	p.Pause()
	if runtime.GOOS == "linux" {
		if state := processState(t, p.Pid()); state != "T" {
			t.Errorf("state = %s after Pause, want T", state)
		}
	}
	p.Send("hello")
	wantFailure(t, "no such line within", func(tb testing.TB) { p.ReadLine(tb, 30*time.Millisecond) })
	p.Resume()
	p.Resume()
	p.Expect(t, "echo hello")

	p.Pause()
	p.Kill()
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Wait() = %v, want killed", err)
	}
	wantFailure(t, errLogEnded.Error(), func(tb testing.TB) { p.ReadLine(tb, Patience) })
}

func TestProcess_FailureShowsStderr(t *testing.T) {
	wantFailure(t, "crashing as told", func(tb testing.TB) {
		p := StartProcess(tb, "crash")
		if err := p.Wait(); err == nil || err.Error() != "exit status 3" {
			t.Errorf("Wait() = %v, want exit status 3", err)
		}
		p.ReadLine(tb, Patience)
	})
	wantFailure(t, `no role "nobody"`, func(tb testing.TB) {
		StartProcess(tb, "nobody").Expect(tb, "anything")
	})
	wantFailure(t, `wrote "args "`, func(tb testing.TB) {
		StartProcess(tb, "echo").Expect(tb, "echo")
	})
}
