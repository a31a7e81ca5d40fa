package locktest

import (
	"cmp"
	"maps"
	"slices"
)

// group is some scenarios about one thing.
type group struct {
	name      string
	places    bool // it is about kinds whose waiters have places
	scenarios map[string]func(*Env)
}

// lockGroups are about every kind of lock.
var lockGroups = []group{
	{"acquire", false, acquireScenarios},
	{"acquire", false, reentryScenarios},
	{"release", false, releaseScenarios},
	{"release", false, releaseTermScenarios},
	{"lease", false, leaseScenarios},
	{"lease", false, termScenarios},
	{"lease", false, fencingScenarios},
	{"wait", false, waitScenarios},
	{"wait", false, listenScenarios},
	{"wait", false, deniedScenarios},
	{"wait", false, deniedReleaseScenarios},
	{"fault", false, faultScenarios},
	{"fault", false, outageScenarios},
	{"fault", false, refusalScenarios},
	{"fault", false, forgottenScenarios},
	{"fault", false, strangerScenarios},
	{"hygiene", false, hygieneScenarios},
	{"corner", false, cornerScenarios},
	{"grant", false, grantScenarios},
	{"grant", false, grantRaceScenarios},
	{"grant", false, grantFaultScenarios},
	{"grant", false, handoffScenarios},
	{"host", false, hostScenarios},
	{"fair", true, fairScenarios},
	{"fair", true, fairFaultScenarios},
	{"redisson", true, redissonScenarios},
	{"redisson", true, besideScenarios},
}

// sideGroups are about the two sides of a read-write lock.
var sideGroups = []group{
	{"share", false, rwShareScenarios},
	{"gate", false, rwGateScenarios},
	{"owner", false, rwOwnerScenarios},
	{"downgrade", false, rwDowngradeScenarios},
	{"downgrade", false, rwDowngradeFaultScenarios},
	{"downgrade", false, rwReleaseTermScenarios},
	{"right", false, rwRightScenarios},
	{"right", false, rwCrowdScenarios},
	{"right", false, rwDeniedReleaseScenarios},
	{"queue", false, rwQueueScenarios},
	{"wait", false, rwEndScenarios},
	{"redisson", false, rwRedissonScenarios},
	{"redisson", false, rwTurnScenarios},
}

// EachMode are the groups that run in each mode on real servers: those in which the modes differ. In the virtual world
// all groups do.
var EachMode = []string{"wait", "grant", "fair"}

// Reasons why a scenario needs a real server.
const (
	processes = "other processes, which are killed or stopped"
	spins     = "a loop that waits for no timer: a bubble's clock would stand still"
	disk      = "files on a disk"
	timers    = "go-redis keeps the timers of exhausted pools for all clients: a timer of one bubble is none in another"
)

// realOnly says why a scenario does not run in the virtual world. All others run in both.
var realOnly = map[string]string{
	"BusyProcessorLosesNothing":                      processes,
	"DeadWriterIsDropped":                            processes,
	"ExhaustedPool":                                  timers,
	"FullDiskIsAnErrorAndTheTTLBounds":               disk,
	"GrantToADeadWaiterIsBounded":                    processes,
	"KilledGrantee":                                  processes,
	"KilledHolderIsOutlivedByItsTTL":                 processes,
	"KilledInTheQueue":                               processes,
	"LoadingServer":                                  disk,
	"ManyReadersOrOneWriterInProcesses":              processes,
	"OfADeadReaderEnds":                              processes,
	"OfAPausedReaderEnds":                            processes,
	"OfTheLastDeadReaderEnds":                        processes,
	"OrderOfArrivalOverProcesses":                    processes,
	"PausedHolderWakesUpToALoss":                     processes,
	"ReaderAgainstLoopingWriters":                    processes,
	"ReadersComeInAndWritersDoNot":                   processes,
	"ReentryBehindMaxHoldIsRefused":                  spins,
	"ResumedProcessDoesNotRefuseForALeaseThatIsOver": processes,
	"ResumedProcessIsFirstAgain":                     processes,
	"StoppedGrantee":                                 processes,
	"StoppedInTheQueue":                              processes,
	"UnlockBehindMaxHoldIsTold":                      spins,
	"WaitingIsIdle":                                  processes,
	"WriterAgainstLoopingReaders":                    processes,
}

// Place says where a scenario runs.
type Place struct {
	Group, Name string
	Kinds       string
	Virtual     string // the modes, or why not
	Real        string // the modes
}

// Places lists all scenarios, by group and name.
func Places() []Place {
	var all []Place
	add := func(groups []group, kinds string) {
		for _, g := range groups {
			for name := range maps.Keys(g.scenarios) {
				p := Place{g.name, name, kinds, "each mode", "default"}
				if g.places {
					p.Kinds = "fair"
				}
				if slices.Contains(EachMode, g.name) {
					p.Real = "each mode"
				}
				if why := realOnly[name]; why != "" {
					p.Virtual = "no: " + why
				}
				all = append(all, p)
			}
		}
	}
	add(lockGroups, "mutex, fair, write")
	add(sideGroups, "both sides")
	slices.SortFunc(all, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	return all
}
