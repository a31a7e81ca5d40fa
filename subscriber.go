package holdfast

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/pubsub"
)

// newSubscriber returns the one subscription of a manager, for all its locks: its inbox, on which other processes tell it of grants, the
// channels on which Redisson announces releases, and those of elections. See package pubsub. lost is called when a connection is,
// and closed when the client is.
func newSubscriber(client redis.UniversalClient, servers deployment, mode PublishMode, log *journal.Journal, lost func(unheard bool), closed func()) *pubsub.Subscriber {
	return pubsub.New(pubsub.Config{
		Client:  client,
		Nodes:   servers.cluster,
		Plain:   mode == PublishClassic,
		Insist:  mode == PublishSharded,
		Journal: log,
		Lost:    lost,
		Closed:  closed,
	})
}

// PublishMode says with which command a release is announced and heard.
type PublishMode uint8

const (
	// PublishAuto decides as Redisson does by default: PublishSharded with a *redis.ClusterClient and
	// a server that knows sharded messages (Redis 7), else PublishClassic. No request is sent to find
	// this out. A *redis.ClusterClient with ClusterSlots of its own, as redis.NewFailoverClusterClient
	// returns for Sentinel, does not count as one.
	PublishAuto PublishMode = iota
	// PublishClassic uses PUBLISH and SUBSCRIBE, as Redisson does before 3.22.0 and with
	// shardedSubscriptionMode OFF.
	PublishClassic
	// PublishSharded uses SPUBLISH and SSUBSCRIBE. New refuses it unless the client is a
	// *redis.ClusterClient of a cluster. If the server does not know these commands, Holdfast finds
	// releases by Redisson by polling.
	PublishSharded
)

// String returns the name of the constant.
func (m PublishMode) String() string {
	names := [...]string{"PublishAuto", "PublishClassic", "PublishSharded"}
	if int(m) >= len(names) {
		return fmt.Sprintf("PublishMode(%d)", uint8(m))
	}
	return names[m]
}
