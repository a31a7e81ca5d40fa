package locktest

import (
	"cmp"
	"maps"
	"slices"
)

// group is some scenarios about one thing.
type group struct {
	name      string
	of        subject
	scenarios map[string]func(*Env)
}

// subject is what a group is about.
type subject int

const (
	everyKind  subject = iota
	permitsToo         // every kind, and semaphores
	places             // kinds whose waiters have places
	lingers            // kinds that can linger: the others
	sides              // the two sides of a read-write lock
)

// lockGroups are about every kind of lock.
var lockGroups = []group{
	{"acquire", everyKind, acquireScenarios},
	{"acquire", everyKind, reentryScenarios},
	{"release", everyKind, releaseScenarios},
	{"release", everyKind, releaseTermScenarios},
	{"lease", everyKind, leaseScenarios},
	{"lease", everyKind, forWriters(endingScenarios)},
	{"lease", everyKind, termScenarios},
	{"lease", everyKind, fencingScenarios},
	{"stay", everyKind, stayScenarios},
	{"ticket", permitsToo, ticketScenarios},
	{"ticket", permitsToo, ticketFaultScenarios},
	{"wanted", everyKind, wantedScenarios},
	{"linger", lingers, lingerScenarios},
	{"linger", lingers, lingerFaultScenarios},
	{"linger", lingers, unheardLingerScenarios},
	{"wait", everyKind, waitScenarios},
	{"wait", everyKind, listenScenarios},
	{"wait", everyKind, deniedScenarios},
	{"wait", everyKind, deniedReleaseScenarios},
	{"wait", everyKind, unheardScenarios},
	{"fault", everyKind, faultScenarios},
	{"fault", everyKind, forWriters(bothFaultScenarios)},
	{"fault", everyKind, outageScenarios},
	{"fault", everyKind, refusalScenarios},
	{"fault", everyKind, forgottenScenarios},
	{"fault", everyKind, strangerScenarios},
	{"hygiene", everyKind, hygieneScenarios},
	{"corner", everyKind, cornerScenarios},
	{"grant", everyKind, grantScenarios},
	{"grant", everyKind, grantRaceScenarios},
	{"grant", everyKind, grantFaultScenarios},
	{"grant", everyKind, handoffScenarios},
	{"host", everyKind, hostScenarios},
	{"fair", places, fairScenarios},
	{"fair", places, fairFaultScenarios},
	{"redisson", places, redissonScenarios},
	{"redisson", places, besideScenarios},
}

// sideGroups are about the two sides of a read-write lock.
var sideGroups = []group{
	{"share", sides, rwShareScenarios},
	{"gate", sides, rwGateScenarios},
	{"owner", sides, rwOwnerScenarios},
	{"downgrade", sides, rwDowngradeScenarios},
	{"downgrade", sides, rwDowngradeFaultScenarios},
	{"downgrade", sides, rwReleaseTermScenarios},
	{"right", sides, rwRightScenarios},
	{"right", sides, rwCrowdScenarios},
	{"right", sides, forReaders(bothFaultScenarios, nil)},
	{"right", sides, forReaders(endingScenarios, nil)},
	{"right", sides, rwDeniedReleaseScenarios},
	{"stay", sides, rwStayScenarios},
	{"ticket", sides, rwTicketScenarios},
	{"ticket", sides, rwTicketFaultScenarios},
	{"wanted", sides, rwWantedScenarios},
	{"linger", sides, rwLingerScenarios},
	{"queue", sides, rwQueueScenarios},
	{"wait", sides, rwEndScenarios},
	{"redisson", sides, rwRedissonScenarios},
	{"redisson", sides, rwTurnScenarios},
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
	"ReaderKilledHolderIsOutlivedByItsTTL":           processes,
	"ReaderPausedHolderWakesUpToALoss":               processes,
	"KilledInTheQueue":                               processes,
	"LoadingServer":                                  disk,
	"OfADeadReaderEnds":                              processes,
	"PausedHolderWakesUpToALoss":                     processes,
	"ReentryBehindMaxHoldIsRefused":                  spins,
	"ResumedProcessDoesNotRefuseForALeaseThatIsOver": processes,
	"ResumedProcessIsFirstAgain":                     processes,
	"StoppedGrantee":                                 processes,
	"UnlockBehindMaxHoldIsTold":                      spins,
	"WaitingIsIdle":                                  processes,
}

// witnesses are those that run on a real server where repetitions are left out, see redistest.Quick: some of each part, to show that a real server does what the virtual one does.
var witnesses = []string{
	"AnswersInTheMiddleOfPipelines", "CloseEndsEverything", "DeletedKeyIsNoticedAndNotRecreated", "DeniedWaiterIsHealed", "FencingTokensGrow",
	"FlushedScripts", "IsWokenByTheMessage", "KilledPubSubIsReplaced", "MaxHoldOutlivesTheFirstLease", "NamesOfAnyShape",
	"TokensGrowHoweverItIsGranted", "TryLockOfAHeldLockIsOneCommand", "TwiceIsErrNotHeldAndTouchesNobody", "TwoCommandsPerHandOver",
	"AnotherProcessGetsWhatLingers", "GivingUpLeavesNoDrift", "MixedOrderWithRedisson", "DowngradeOfRedisson", "IsRenewed", "ReaderRestartWithoutDataIsALoss",
	"ReadersOfThreeProcessesComeInTogether", "TryRLock", "UpgradeIsADeadlock", "WriterLearnsOfAnEarlierEnd", "ByAMessage", "ReaderByAMessage",
}

// inQuick reports whether a scenario runs with a kind on a real server where repetitions are left out: a witness, and what is
// not virtual, with one kind of lock.
func inQuick(g group, name, kind string) bool {
	return (kind == "mutex" || g.of == places || g.of == sides) && (realOnly[name] != "" || slices.Contains(witnesses, name))
}

// Place says where a scenario runs.
type Place struct {
	Group, Name string
	Kinds       string
	Virtual     string // the modes, or why not
	Real        string // the modes
	Quick       string // the kinds on real servers in the default mode, where repetitions are left out; or none
}

// Places lists all scenarios, by group and name.
func Places() []Place {
	var all []Place
	add := func(groups []group, kinds string) {
		for _, g := range groups {
			for name := range maps.Keys(g.scenarios) {
				p := Place{g.name, name, kinds, "each mode", "default", kinds}
				if g.of == places {
					p.Kinds, p.Quick = "fair", "fair"
				} else if g.of != sides {
					p.Quick = "mutex"
				}
				if g.of == permitsToo {
					p.Kinds += ", semaphore"
				}
				if g.of == lingers {
					p.Kinds = "mutex, write"
				}
				if !inQuick(g, name, "mutex") {
					p.Quick = "no"
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
