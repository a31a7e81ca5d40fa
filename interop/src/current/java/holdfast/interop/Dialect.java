package holdfast.interop;

import org.redisson.config.BaseConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.NameMapper;
import org.redisson.config.ShardedSubscriptionMode;

/** What Redisson 4 says differently from Redisson 3. */
final class Dialect {
    private Dialect() {}

    static void password(Config config, BaseConfig<?> servers, String password) {
        config.setPassword(password);
    }

    /**
     * A request that is not answered in time is sent again, and counts a hold twice: a process or a server that
     * stands still for the usual 3 s must not lead to that.
     */
    static void timeout(BaseConfig<?> servers, int millis) {
        servers.setTimeout(millis);
        servers.setSubscriptionTimeout(millis);
    }

    static void prefix(Config config, BaseConfig<?> servers, String prefix) {
        config.setNameMapper(new NameMapper() {
            @Override
            public String map(String name) {
                return prefix + name;
            }

            @Override
            public String unmap(String name) {
                return name.substring(prefix.length());
            }
        });
    }

    static void messages(ClusterServersConfig cluster, Main.Messages messages) {
        cluster.setShardedSubscriptionMode(switch (messages) {
            case AUTO -> ShardedSubscriptionMode.AUTO;
            case CLASSIC -> ShardedSubscriptionMode.OFF;
            case SHARDED -> ShardedSubscriptionMode.ON;
        });
    }
}
