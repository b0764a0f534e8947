import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Scanner;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.scalable.SegmentTopicName;

/** Reads a topic name a line, in Base64; writes what Pulsar 5's TopicName makes of it, texts in Base64, or "none". */
public class TopicNameCases {
    public static void main(String[] args) {
        var lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        var answers = new StringBuilder();
        while (lines.hasNextLine()) {
            answers.append(answer(new String(Base64.getDecoder().decode(lines.nextLine()), StandardCharsets.UTF_8))).append('\n');
        }
        System.out.print(answers);
    }

    private static String answer(String name) {
        TopicName topic;
        try {
            topic = TopicName.get(name);
        } catch (RuntimeException error) {
            return "none";
        }
        var range = topic.getSegmentRange();
        return String.join(" ",
            encoded(topic.toString()), topic.getDomain().value(), topic.getTenant(), topic.getNamespace(),
            encoded(topic.getLocalName()), String.valueOf(topic.getPartitionIndex()),
            range.map(each -> each.start() + " " + each.end()).orElse("-1 -1"), String.valueOf(topic.getSegmentId()),
            encoded((topic.isSegment() ? SegmentTopicName.getParentTopicName(topic) : topic).toString()));
    }

    private static String encoded(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
