package holdfast.interop;

import java.util.List;

/** One line of the input. */
record Request(String id, String thread, String verb, String kind, String name, List<String> arguments) {

    static Request parse(String line) {
        String[] words = line.split(" ");
        return new Request(words[0], words[1], words[2], words[3], words[4], List.of(words).subList(5, words.length));
    }

    long number(int i) {
        return Long.parseLong(arguments.get(i));
    }
}
