package redistest

import "testing"

func TestSentinel_ReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 2)
	rdb := s.Client(t)
	for range 2 {
		old := s.Master()
		set(t, old, "k", "v", 2)
		old.Kill()
		master := s.AwaitNewMaster(old)
		if got := get(t, master, "k"); got != "v" {
			t.Errorf("k = %q at the new master", got)
		}
		Eventually(t, Patience, "the client follows", func() bool { return rdb.Set(t.Context(), "k2", "v", 0).Err() == nil })
		if got := get(t, master, "k2"); got != "v" {
			t.Errorf("the client writes elsewhere")
		}
		old.Restart()
		s.AwaitHealthy()
		if err := hasRole(old, "slave"); err != nil {
			t.Error(err)
		}
	}
}

func TestSentinel_FailoverOnRequest(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 1)
	set(t, s.Master(), "k", "v", 1)
	from, to := s.Failover()
	if from == to || s.Master() != to {
		t.Errorf("the master is %s, want %s", s.Master().Addr(), to.Addr())
	}
	s.AwaitHealthy()
	if got := get(t, to, "k"); got != "v" {
		t.Errorf("k = %q", got)
	}
}

func TestSentinel_SurvivesOneOfItsOwn(t *testing.T) {
	t.Parallel()
	s := StartSentinel(t, 1)
	s.Sentinels()[2].Kill()
	old := s.Master()
	old.Pause()
	s.AwaitNewMaster(old)
	old.Resume()
	s.Sentinels()[2].Restart()
	s.AwaitHealthy()
}
