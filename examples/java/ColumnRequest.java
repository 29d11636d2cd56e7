import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes a tensorflow.serving.PredictRequest directly from arrays, as docs/wire.md describes.
 *
 * <p>Each feature is a column: an item feature has a row per candidate, a user feature one row.
 * Rows that several candidates share are sent once, with the index row_to_DOMAIN. Values are in
 * row-major order.
 */
public final class ColumnRequest {
  private static final int FLOAT = 1;
  private static final int STRING = 7;
  private static final int INT64 = 9;

  private final ByteArrayOutputStream message = new ByteArrayOutputStream();

  /** Begins a request to a model's signature, such as "columnar". */
  public ColumnRequest(String model, String signature) {
    ByteArrayOutputStream spec = new ByteArrayOutputStream();
    field(spec, 1, utf8(model));
    field(spec, 3, utf8(signature));
    field(message, 1, spec.toByteArray());
  }

  /** Adds a column of integers. Throws IllegalArgumentException if they do not fill the shape. */
  public ColumnRequest int64(String name, long[] values, int... shape) {
    ByteBuffer content = littleEndian(8 * values.length);
    content.asLongBuffer().put(values);
    return input(name, INT64, content(content), values.length, shape);
  }

  /** Adds a column of floats, like int64. */
  public ColumnRequest float32(String name, float[] values, int... shape) {
    ByteBuffer content = littleEndian(4 * values.length);
    content.asFloatBuffer().put(values);
    return input(name, FLOAT, content(content), values.length, shape);
  }

  /** Adds a column of strings, like int64. */
  public ColumnRequest strings(String name, String[] values, int... shape) {
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    for (String value : values) {
      field(body, 8, utf8(value)); // string_val
    }
    return input(name, STRING, body.toByteArray(), values.length, shape);
  }

  /** Adds the index of a domain ("user", "shop"): for each candidate, its row of that domain. */
  public ColumnRequest rowTo(String domain, long... rows) {
    return int64("row_to_" + domain, rows, rows.length);
  }

  /** Returns the encoded message. */
  public byte[] toByteArray() {
    return message.toByteArray();
  }

  private ColumnRequest input(String name, int dtype, byte[] body, int count, int[] shape) {
    ByteArrayOutputStream dims = new ByteArrayOutputStream();
    long size = 1;
    for (int rows : shape) {
      ByteArrayOutputStream dim = new ByteArrayOutputStream();
      integer(dim, 1, rows);
      field(dims, 2, dim.toByteArray());
      size *= rows;
    }
    if (size != count) {
      throw new IllegalArgumentException(
          "column " + name + ": " + count + " values do not fill shape " + Arrays.toString(shape));
    }
    ByteArrayOutputStream tensor = new ByteArrayOutputStream();
    integer(tensor, 1, dtype);
    field(tensor, 2, dims.toByteArray());
    tensor.writeBytes(body);
    ByteArrayOutputStream entry = new ByteArrayOutputStream();
    field(entry, 1, utf8(name));
    field(entry, 2, tensor.toByteArray());
    field(message, 2, entry.toByteArray());
    return this;
  }

  private static byte[] content(ByteBuffer values) {
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    if (values.capacity() > 0) {
      field(body, 4, values.array()); // tensor_content
    }
    return body.toByteArray();
  }

  private static ByteBuffer littleEndian(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void field(ByteArrayOutputStream to, int number, byte[] content) {
    varint(to, number << 3 | 2);
    varint(to, content.length);
    to.writeBytes(content);
  }

  private static void integer(ByteArrayOutputStream to, int number, long value) {
    varint(to, number << 3);
    varint(to, value);
  }

  private static void varint(ByteArrayOutputStream to, long value) {
    for (; (value & ~0x7fL) != 0; value >>>= 7) {
      to.write((int) (value & 0x7f | 0x80));
    }
    to.write((int) value);
  }
}
