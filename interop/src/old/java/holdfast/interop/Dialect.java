package holdfast.interop;

import org.redisson.api.NameMapper;
import org.redisson.config.BaseConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;

/** What Redisson 3 says differently from Redisson 4. */
final class Dialect {
    private Dialect() {}

    static void password(Config config, BaseConfig<?> servers, String password) {
        servers.setPassword(password);
    }

    static void timeout(BaseConfig<?> servers, int millis) {
        // This Redisson sometimes sends its SUBSCRIBE only when its time-out has passed, so that stays at 3 s.
    }

    static void prefix(Config config, BaseConfig<?> servers, String prefix) {
        servers.setNameMapper(new NameMapper() {
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
        if (messages == Main.Messages.SHARDED) {
            throw new IllegalArgumentException("this Redisson has no sharded messages");
        }
    }
}
