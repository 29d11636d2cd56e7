import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.tensorflow.framework.TensorProto;
import tensorflow.serving.Predict.PredictResponse;

/** Ranks two movies for one user, then the same movies for two users: Rank HOST:PORT MODEL. */
public final class Rank {
  private static final String[] CITIES = {"Łódź", "Oslo"};
  private static final long[] HISTORY = {4, 8, 15, 16};
  private static final long[] LENGTHS = {2, 1};

  private static final MethodDescriptor<byte[], PredictResponse> PREDICT =
      MethodDescriptor.<byte[], PredictResponse>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName("tensorflow.serving.PredictionService/Predict")
          .setRequestMarshaller(new AsTheyAre())
          .setResponseMarshaller(ProtoUtils.marshaller(PredictResponse.getDefaultInstance()))
          .build();

  /** Sends encoded requests unchanged. */
  private static final class AsTheyAre implements MethodDescriptor.Marshaller<byte[]> {
    @Override
    public InputStream stream(byte[] request) {
      return new ByteArrayInputStream(request);
    }

    @Override
    public byte[] parse(InputStream stream) {
      try {
        return stream.readAllBytes();
      } catch (IOException error) {
        throw Status.INTERNAL.withCause(error).asRuntimeException();
      }
    }
  }

  /** Prints the scores, one per line. */
  public static void main(String[] args) throws InterruptedException {
    if (args.length != 2) {
      System.err.println("usage: Rank HOST:PORT MODEL");
      System.exit(2);
    }
    ManagedChannel channel = ManagedChannelBuilder.forTarget(args[0]).usePlaintext().build();
    try {
      for (long[] ages : new long[][] {{31}, {31, 54}}) {
        CallOptions deadline = CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
        byte[] request = request(args[1], ages).toByteArray();
        PredictResponse answer =
            ClientCalls.blockingUnaryCall(channel, PREDICT, deadline, request);
        for (float score : floats(answer.getOutputsOrThrow("scores"))) {
          System.out.println(score);
        }
      }
    } finally {
      channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
    }
  }

  /** Requests scores of two movies for users of these ages; with two, movie i is for user i. */
  private static ColumnRequest request(String model, long[] ages) {
    int users = ages.length;
    ColumnRequest request =
        new ColumnRequest(model, "columnar")
            .int64("age", ages, users)
            .strings("city", Arrays.copyOf(CITIES, users), users)
            .int64("history", Arrays.copyOf(HISTORY, 2 * users), users, 2)
            .int64("history/length", Arrays.copyOf(LENGTHS, users), users)
            .int64("movie", new long[] {7, 9}, 2)
            .strings("genres", new String[] {"War", "", "Noir", "War"}, 2, 2)
            .int64("genres/length", new long[] {1, 2}, 2)
            .float32("vector", new float[] {1, 2, 3, 4, 5, 6}, 2, 3);
    return users > 1 ? request.rowTo("user", 0, 1) : request;
  }

  /** Reads floats in either of the two forms that servers send. */
  private static float[] floats(TensorProto tensor) {
    boolean typed = tensor.getFloatValCount() > 0;
    float[] values =
        new float[typed ? tensor.getFloatValCount() : tensor.getTensorContent().size() / 4];
    if (typed) {
      for (int i = 0; i < values.length; i++) {
        values[i] = tensor.getFloatVal(i);
      }
    } else {
      tensor
          .getTensorContent()
          .asReadOnlyByteBuffer()
          .order(ByteOrder.LITTLE_ENDIAN)
          .asFloatBuffer()
          .get(values);
    }
    return values;
  }
}
