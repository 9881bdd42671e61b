#include "base/other_names.h"

#include <cctype>

#include "base/text.h"

namespace hone {

namespace {

/// Adding a name is a word in a row.
struct OtherNames {
  std::string_view place;
  std::string_view names;  ///< as plain() makes them, with blanks between
  std::string_view hint;
};

constexpr OtherNames kOtherNames[] = {
    {"loss.kind", "sparsecategoricalcrossentropy crossentropyloss", "it is \"softmax_cross_entropy\" for logits, \"cross_entropy\" for probabilities (behind a softmax)"},
    {"loss.kind", "categoricalcrossentropy", "it is \"softmax_cross_entropy\" for logits, \"cross_entropy\" for probabilities (behind a softmax), with loss.targets = \"probabilities\" for one-hot rows"},
    {"loss.kind", "binarycrossentropy bceloss logloss", "it is \"bce\" for probabilities (behind a sigmoid), \"bce_with_logits\" for logits"},
    {"loss.kind", "bcewithlogitsloss sigmoidcrossentropy", "it is \"bce_with_logits\""},
    {"loss.kind", "meansquarederror mseloss l2 l2loss", "it is \"mse\""},
    {"loss.kind", "meanabsoluteerror maeloss l1 l1loss", "it is \"mae\""},
    {"loss.kind", "smoothl1loss smoothl1 huberloss", "it is \"huber\", with loss.delta"},
    {"loss.kind", "nllloss negativeloglikelihood", "it is \"nll\""},
    {"loss.kind", "kldivloss kullbackleiblerdivergence kld", "it is \"kl_divergence\""},
    {"loss.kind", "cosinesimilarity cosineembeddingloss cosinesimilarityloss", "it is \"cosine\""},
    {"loss.kind", "meansquaredlogarithmicerror", "it is \"msle\""},
    {"loss.kind", "meanabsolutepercentageerror", "it is \"mape\""},
    {"loss.kind", "poissonnllloss", "it is \"poisson\", of logarithms of rates in PyTorch's convention"},
    {"loss.kind",
     "categoricalhinge gaussiannllloss focal focalloss binaryfocalcrossentropy categoricalfocalcrossentropy "
     "dice tversky ctc ctcloss triplet tripletmarginloss marginrankingloss multimarginloss softmarginloss circle",
     "it is not there; a loss that the model's graph computes as an output is trained with kind = \"output\", its target an input of the model"},
    {"optimizer.kind", "momentum nesterov", "it is \"sgd\" with optimizer.momentum = 0.9; nesterov = true"},
    {"optimizer.kind", "adamweightdecay adamwtorch adamwhf", "it is \"adamw\""},
    {"metrics.list", "acc sparsecategoricalaccuracy categoricalaccuracy binaryaccuracy", "it is \"accuracy\""},
    {"metrics.list", "topkcategoricalaccuracy sparsetopkcategoricalaccuracy top5 topk", "it is \"top_5_accuracy\", for any number"},
    {"metrics.list", "meansquarederror", "it is \"mse\""},
    {"metrics.list", "meanabsoluteerror", "it is \"mae\""},
    {"metrics.list", "r2score", "it is \"r2\""},
    {"metrics.list", "f1score", "it is \"f1\""},
    {"metrics.list", "rocauc aucroc", "it is \"auc\""},
    {"metrics.list", "loss valloss", "the loss is always reported; leave it out"},
    {"schedule.kind", "cosinedecay cosineannealinglr cosineannealing cosinewithwarmup", "it is \"cosine\", with schedule.warmup_steps"},
    {"schedule.kind", "steplr", "it is \"step\", with schedule.factor and schedule.every or every_steps"},
    {"schedule.kind", "exponentiallr exponentialdecay", "it is \"exponential\" (with staircase \"step\"), with schedule.factor and schedule.every or every_steps"},
    {"schedule.kind", "inversetimedecay", "it is \"inverse_time\", with schedule.factor and schedule.every or every_steps"},
    {"schedule.kind", "piecewiseconstantdecay piecewiseconstant multisteplr multistep", "it is \"piecewise\", with schedule.boundaries, in steps, and schedule.fractions of the learning rate, or schedule.factor"},
    {"schedule.kind", "cosinedecayrestarts cosineannealingwarmrestarts cosinewithrestarts sgdr", "it is \"cosine_restarts\", with schedule.every or every_steps, cycle_growth and peak_factor"},
    {"schedule.kind", "reducelronplateau reduceonplateau", "it is \"plateau\""},
    {"schedule.kind", "onecyclelr", "it is \"one_cycle\""},
    {"schedule.kind", "linearlr linearwithwarmup lineardecay", "it is \"linear\", with schedule.warmup_steps"},
    {"schedule.kind", "polynomiallr polynomialdecay", "it is \"polynomial\""},
    {"train.precision", "float32 fp32 single", "it is \"f32\""},
    {"train.precision", "bfloat16 mixedbfloat16", "it is \"bf16\""},
    {"train.precision", "float16 fp16 half mixedfloat16 mixed", "it is \"f16\"; \"bf16\" needs no scaled loss, and is the quicker one on CPUs"},
    {"train.precision", "tensorfloat32", "it is \"tf32\""},
    {"--target", "gpu nvidia", "a GPU's program is \"cuda\""},
    {"--device", "gpu nvidia", "a GPU is \"cuda\", the second one \"cuda:1\""},

    {"[schedule]", "decayrate", "it is schedule.factor"},
    {"[schedule]", "alpha", "it is schedule.final_fraction"},
    {"[schedule]", "endlearningrate etamin minlr", "it is schedule.final_fraction, a share of optimizer.learning_rate; of kind \"plateau\" schedule.min_rate"},
    {"[schedule]", "initiallearningrate warmuptarget maxlr", "it is optimizer.learning_rate"},
    {"[schedule]", "staircase", "kind = \"step\" has it, kind = \"exponential\" has it not"},
    {"[schedule]", "decaysteps", "it is schedule.every_steps of step, exponential and inverse_time; of the others schedule.total_steps, which includes the warm-up, and is the whole run without it"},
    {"[schedule]", "milestones", "they are schedule.boundaries, in steps, of kind = \"piecewise\""},
    {"[schedule]", "values", "they are schedule.fractions, shares of optimizer.learning_rate, of kind = \"piecewise\""},
    {"[schedule]", "t0 firstdecaysteps", "it is schedule.every_steps, or in epochs schedule.every, of kind = \"cosine_restarts\""},
    {"[schedule]", "tmult tmul", "it is schedule.cycle_growth"},
    {"[schedule]", "mmul", "it is schedule.peak_factor"},
    {"[optimizer]", "alpha decayrate", "it is optimizer.rho"},
    {"[optimizer]", "emamomentum useema", "it is train.ema_decay"},
    {"[train]", "patience", "it is train.early_stopping.patience"},
    {"[train]", "monitor", "it is train.early_stopping.monitor"},
    {"[train]", "mindelta", "it is train.early_stopping.min_delta"},
    {"[train]", "restorebestweights restorebest", "it is train.early_stopping.restore_best"},
    {"[model]", "kernelregularizer biasregularizer activityregularizer regularizer l1 l2 l1l2",
     "terms of the loss for weights are not there: optimizer.weight_decay pulls weights towards zero (with sgd and convention = \"torch\" 2 * l is what L2(l) does); a term that the graph computes is trained with loss.kind = \"output\""},

    {"recipe", "lr learningrate", "it is optimizer.learning_rate"},
    {"recipe", "eps", "it is optimizer.epsilon"},
    {"recipe", "betas", "they are optimizer.beta1 and optimizer.beta2"},
    {"recipe", "decayrate", "it is schedule.factor, or of the optimizer rmsprop optimizer.rho"},
    {"recipe", "decay l2", "it is optimizer.weight_decay; a learning rate that shrinks is a [schedule]"},
    {"recipe", "nodecay", "it is optimizer.exclude_from_weight_decay = [\"*bias\", ...]"},
    {"recipe", "clipnorm globalclipnorm maxgradnorm gradclip gradientclipping gradientclipval clipgradnorm", "it is optimizer.clip_norm, of all gradients together"},
    {"recipe", "gamma", "it is schedule.factor"},
    {"recipe", "stepsize", "it is schedule.every, in epochs, or schedule.every_steps"},
    {"recipe", "stepsperepoch", "it is said when it runs: hone-run train PLAN --limit N"},
    {"recipe", "tmax decaysteps", "it is schedule.total_steps; without it the schedule takes the whole run"},
    {"recipe", "warmup numwarmupsteps warmupratio", "it is schedule.warmup_steps"},
    {"recipe", "scheduler lrscheduler lrschedule", "the section is [schedule]: kind = \"cosine\""},
    {"recipe", "batch batchsize perdevicetrainbatchsize trainbatchsize", "it is data.batch_size"},
    {"recipe", "validation validationsplit validationdata valid val evaldata", "the data come when it runs: hone-run train PLAN --train x=X.npy[0:9000],y=Y.npy[0:9000] --valid x=X.npy[9000:],y=Y.npy[9000:]"},
    {"recipe", "dataset train traindata inputs target targets label labels", "the data come when it runs: hone-run train PLAN --train x=X.npy,y=Y.npy"},
    {"recipe", "shuffle", "hone-run train shuffles, unless --no-shuffle is given; data.shuffle_buffer says among how many"},
    {"recipe", "normalize normalization rescale rescaling mean std", "data.scale = { INPUT = 0.00392156862745098 } makes pixels 0 to 1"},
    {"recipe", "numworkers workers prefetch", "leave it out: batches are made beside the step as they are"},
    {"recipe", "mixedprecision amp fp16 bf16 float16 dtype autocast policy", "it is train.precision = \"bf16\""},
    {"recipe", "fromlogits", "the kind of loss says it: softmax_cross_entropy and bce_with_logits take logits, cross_entropy and bce probabilities"},
    {"recipe", "reduction", "leave it out: a loss is the mean over all targets"},
    {"recipe", "classweight weight", "it is loss.class_weights"},
    {"recipe", "posweight", "it is loss.class_weights = [1, POS_WEIGHT]: what no and yes count"},
    {"recipe", "sampleweight", "it is loss.sample_weights = true, and hone-run train --train x=..,y=..,sample_weight=FILE"},
    {"recipe", "gradientaccumulation gradientaccumulationsteps accumulategradbatches accumulation gradaccum accumulationsteps", "it is train.gradient_accumulation_steps"},
    {"recipe", "numepochs maxepochs nepochs numtrainepochs", "it is train.epochs"},
    {"recipe", "steps maxsteps numsteps iterations maxiters", "it is said when it runs: hone-run train PLAN --steps N"},
    {"recipe", "randomseed randomstate", "it is train.seed"},
    {"recipe", "ema", "it is train.ema_decay"},
    {"recipe", "callbacks", "early stopping is train.early_stopping, the learning rate has its [schedule]; checkpoints, curves and TensorBoard's events are what hone-run train --run-dir DIR writes"},
    {"recipe", "fit trainer compile training trainingarguments", "epochs stand in [train], batch_size in [data], the loss in [loss], the optimizer in [optimizer]"},
    {"recipe", "device gpu gpus", "it is said when it runs: hone-run train PLAN --device cuda"},
    {"recipe", "name type", "it is kind"},
    {"recipe", "trainable frozen", "model.freeze and model.train_only name weights by patterns"},
    {"recipe", "r loraalpha loradropout targetmodules", "adapters are [lora] targets = [\"*.q_proj*\"], rank = 8, alpha = 16"},
    {"recipe", "savesteps loggingsteps outputdir logdir checkpoint", "it is said when it runs: hone-run train PLAN --run-dir DIR --save-steps N --log-every N"},

    {"command", "fit training", "it is hone-run train"},
    {"command", "evaluate test validate validation", "it is hone-run eval"},
    {"command", "inference infer generate", "it is hone-run predict"},
    {"command", "benchmark profile time", "it is hone-run bench"},
    {"command", "compile", "it is hone-compile MODEL.onnx -r RECIPE.toml -o PLAN.hone"},
    {"command", "show inspect summary dump info", "it is hone-dump FILE"},

    {"flag", "batchsize bs trainbatchsize perdevicetrainbatchsize", "--batch"},
    {"flag", "validationdata validationsplit valid val validation evaldata valdata", "--valid"},
    {"flag", "traindata data dataset x y input inputs", "--train --data --in"},
    {"flag", "train", "--data --in"},
    {"flag", "output outfile o save", "--out -o,--out"},
    {"flag", "outputdir logdir checkpointdir savedir rundir workdir", "--run-dir"},
    {"flag", "resumefromcheckpoint continue restore", "--resume"},
    {"flag", "maxsteps numsteps iterations", "--steps"},
    {"flag", "numepochs maxepochs", "--epochs"},
    {"flag", "gpu gpus cuda device", "--device --target"},
    {"flag", "numgpus nproc worldsize", "--replicas"},
    {"flag", "workers numworkers nthreads numthreads jobs j", "--threads"},
    {"flag", "savebestonly savebest", "--keep-best"},
    {"flag", "verbosity v", "--verbose"},
    {"flag", "silent q", "--quiet"},
    {"flag", "config cfg c recipefile", "-r,--recipe"},
    {"flag", "checkpoint ckpt model load weightsfile", "--weights"},
    {"flag", "format form html svg dot json text onnx", "--as"},
    {"flag", "shape inputshape seqlen", "--dim"},
};

/// Letters and digits alone, in lower case.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

std::string_view find(std::string_view place, std::string_view name) {
  const std::string wanted = plain(name);
  for (const OtherNames& row : kOtherNames)
    if (row.place == place)
      for (const std::string& each : split(row.names, ' '))
        if (each == wanted) return row.hint;
  return "";
}

}  // namespace

std::string hint_for_other_name(std::string_view place, std::string_view name) { return std::string(find(place, name)); }

std::string_view flags_for_other_name(std::string_view flag) { return find("flag", flag); }

}  // namespace hone
