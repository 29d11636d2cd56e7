import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;

/** Checks that this client's requests have the same bytes as the Python client's. */
public final class CheckVectors {
  /** Takes the path of vectors.txt. Exits with 1 at the first request that differs. */
  public static void main(String[] args) throws IOException {
    ColumnRequest request = null;
    String name = "";
    int compared = 0;
    for (String line : Files.readAllLines(Path.of(args[0]))) {
      String[] words = line.trim().split(" ");
      if (words[0].equals("request")) {
        name = words[1];
        request = new ColumnRequest(words[2], words[3]);
      } else if (words[0].equals("bytes")) {
        String written = HexFormat.of().formatHex(request.toByteArray());
        if (!written.equals(words[1])) {
          System.err.println(name + ": got " + written + ", expected " + words[1]);
          System.exit(1);
        }
        compared++;
      } else {
        int[] shape = Arrays.stream(words[2].split(",")).mapToInt(Integer::parseInt).toArray();
        add(request, words, shape, Arrays.copyOfRange(words, 3, words.length));
      }
    }
    System.out.println(compared + " requests are equal");
  }

  private static void add(ColumnRequest request, String[] words, int[] shape, String[] values) {
    switch (words[0]) {
      case "int64":
        request.int64(words[1], Arrays.stream(values).mapToLong(Long::parseLong).toArray(), shape);
        break;
      case "float32":
        float[] floats = new float[values.length];
        for (int i = 0; i < floats.length; i++) {
          floats[i] = Float.parseFloat(values[i]);
        }
        request.float32(words[1], floats, shape);
        break;
      case "string":
        request.strings(
            words[1], Arrays.stream(values).map(CheckVectors::text).toArray(String[]::new), shape);
        break;
      default:
        throw new IllegalArgumentException("dtype " + words[0]);
    }
  }

  private static String text(String hex) {
    return new String(HexFormat.of().parseHex(hex.replace("-", "")), StandardCharsets.UTF_8);
  }
}
